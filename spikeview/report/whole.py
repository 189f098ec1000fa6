"""The run behind a report: its facts, segments, events and manifest as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from spikeview.analysis.clocks import attempts, declined, executed_steps, skips
from spikeview.format import cell, count, plain, scalar, shown
from spikeview.rules.wording import row_of
from spikeview.run import Run

MOST_EVENTS = 200
LONGEST_NOTE = 1000


def whole_run(run: Run) -> dict[str, Any]:
    """What ran, and what its rows add up to. The path stays out: it may name a person or a machine."""
    events = [plain(dict(event)) for event in run.events]
    return {
        "name": run.name,
        "facts": _facts(run),
        "versions": _versions(run.manifest),
        "segments": _segments(run),
        "events": events[:MOST_EVENTS],
        "event_rows": [event_row(event) for event in events[:MOST_EVENTS]],
        "events_left_out": max(0, len(events) - MOST_EVENTS),
        "notes": list(run.notes),
        "manifest": plain(dict(run.manifest)),
        "manifest_rows": [list(pair) for pair in _flat(run.manifest)] if run.manifest else [],
    }


def event_row(event: Mapping[str, Any]) -> dict[str, str]:
    """An event as the three things a table shows of it."""
    said = {key: value for key, value in event.items() if key not in ("kind", "row", "time_ns", "step", "optimizer")}
    if list(said) == ["text"]:
        text = shown(str(said["text"]), LONGEST_NOTE)
    elif list(said) == ["trigger", "reason"]:
        text = f"{_leaf(said['trigger'])}: {_leaf(said['reason'])}"
    else:
        text = ", ".join(f"{shown(key)} {_leaf(value)}" for key, value in said.items())
    return {"kind": str(event.get("kind", "")).replace("_", " "), "row": str(event.get("row", "")), "text": text}


def _facts(run: Run) -> list[list[str]]:
    """What the run's rows add up to."""
    facts = [["rows", count(len(run))]]
    if run.optimizers:
        facts.append(["optimizers", ", ".join(map(shown, run.optimizers))])
    if len(run) and "step" in run:
        steps = run.values("step")
        facts.append(["steps", f"{steps.min()} to {steps.max()}"])
    if run.recorded("attempted").any():
        facts.append(["attempted", count(int(attempts(run).sum()))])
    if run.recorded("executed").any():
        facts.append(["executed", count(executed_steps(run))])
        facts.append(["skipped", count(int(np.maximum(skips(run), declined(run)).sum()))])
    if "precision" in run:
        seen = run.table["precision"].unique().to_pylist()
        facts.append(["precision", ", ".join(shown(text) for text in seen if text is not None)])
    if run.recorded("time_ns").any():
        times = run.values("time_ns")[run.recorded("time_ns")]
        ends = dict.fromkeys(scalar("time_ns", int(time)) for time in (times.min(), times.max()))
        facts.append(["recorded", " to ".join(ends)])
    return facts


def _versions(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Of the programs that recorded the run, as its manifest says."""
    said = manifest.get("recorder")
    return {str(name): str(version) for name, version in said.items()} if isinstance(said, Mapping) else {}


def _segments(run: Run) -> list[dict[str, Any]]:
    """The rows before the first resume, between each two, and after the last."""
    if "segment" not in run:
        return []
    segments = run.values("segment")
    found = []
    for segment in np.unique(segments):
        here = np.flatnonzero(segments == segment)
        first, last = int(here[0]), int(here[-1])
        found.append(
            {
                "segment": int(segment),
                "first_row": row_of(run, first),
                "last_row": row_of(run, last),
                "first_step": cell(run, "step", first)["text"],
                "last_step": cell(run, "step", last)["text"],
            }
        )
    return found


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """A manifest as rows of dotted key and text."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _flat(item, f"{path}.{shown(str(key))}" if path else shown(str(key)))
    elif isinstance(value, (list, tuple)) and any(isinstance(item, (Mapping, list, tuple)) for item in value):
        for index, item in enumerate(value):
            yield from _flat(item, f"{path}[{index}]")
    elif isinstance(value, (list, tuple)):
        yield path, shown(", ".join(_leaf(item) for item in value), LONGEST_NOTE) or "none"
    else:
        yield path, _leaf(value)


def _leaf(value: Any) -> str:
    if value is None or value == {}:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(value) if isinstance(value, float) else shown(str(value))
