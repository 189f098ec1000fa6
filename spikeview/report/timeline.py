"""What happened around an incident, in order of rows: its signals, the events of the run, the scale and the rate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from spikeview.analysis.rates import rates
from spikeview.cells import Kind
from spikeview.format import cell, label, mads, number, plural, scalar
from spikeview.report.series import around
from spikeview.report.whole import event_row
from spikeview.rules.diagnosis import Diagnosed
from spikeview.rules.wording import row_of
from spikeview.run import Run

MOST = 40
CHANGES = 8
# Of what happened in one row, which comes first.
ORDER = ("event", "rate", "scale", "healthy", "transition", "signal", "worst", "end")

Moment = tuple[int, str, str]


def timeline(diagnosed: Diagnosed) -> dict[str, Any]:
    """`moments`, at most MOST of them, the nearest to the first bad row; `left_out` counts the others.

    `ahead` is by how many rows a moment came before the first bad row; it is negative after it. `kind` is one of ORDER.
    """
    run, first = diagnosed.view.run, diagnosed.incident.first_bad.position
    moments = sorted(_moments(diagnosed), key=lambda moment: (moment[0], ORDER.index(moment[1])))
    nearest = sorted(moments, key=lambda moment: (moment[1] == "event", abs(moment[0] - first)))[:MOST]
    kept = [moment for moment in moments if moment in nearest]
    bad = row_of(run, first)
    told = [
        {
            "row": row_of(run, place),
            "step": cell(run, "step", place)["text"],
            "ahead": bad - row_of(run, place),
            "kind": kind,
            "text": text,
        }
        for place, kind, text in kept
    ]
    return {"moments": told, "left_out": len(moments) - len(kept)}


def _moments(diagnosed: Diagnosed) -> Iterator[Moment]:
    run, incident = diagnosed.view.run, diagnosed.incident
    first = incident.first_bad.position
    if incident.last_healthy is not None:
        yield incident.last_healthy, "healthy", "last healthy row"
    if diagnosed.transition is not None and diagnosed.transition != first:
        yield diagnosed.transition, "transition", "the transition before the first bad observation"
    yield from _signals(diagnosed)
    if incident.last != first:
        yield incident.last, "end", "last row of the incident"
    yield from _events(diagnosed)
    yield from _scale(diagnosed)
    jump = rates(run).jump(incident.last)
    if jump is not None and "lr" not in incident.extent:
        place, before, after = jump
        yield place, "rate", f"{label('lr')} {number(before)} to {number(after)}"


def _signals(diagnosed: Diagnosed) -> Iterator[Moment]:
    """Where each signal left its baseline first, and where it was farthest out."""
    ahead = {lead.signal: lead.rows_ahead for lead in diagnosed.incident.lead}
    for signal, extent in diagnosed.incident.extent.items():
        worst = extent.worst
        lead = f", {plural(ahead[signal], 'row')} before the loss" if signal in ahead else ""
        here = extent.first == worst.position
        yield extent.first, "signal", f"{_left(diagnosed, signal, extent.first, worst if here else None)}{lead}"
        if not here:
            yield worst.position, "worst", f"{label(signal)} at its worst: {scalar(signal, worst.value)}"


def _left(diagnosed: Diagnosed, signal: str, place: int, seen: Any) -> str:
    """That a signal was out for the first time."""
    found = next(
        (each for each in diagnosed.incident.observations if (each.position, each.signal) == (place, signal)), seen
    )
    if found is None:
        return f"{label(signal)} out"
    if found.reason == "skipped":
        return "the step was attempted and did not execute"
    if found.reason == "not_moved":
        return "the step executed and moved nothing"
    value = cell(diagnosed.view.run, signal, place)["text"]
    if found.reason == "nonfinite":
        return f"{label(signal)} not finite: {value}"
    if found.reason == "drift":
        return f"{label(signal)} begins to rise slowly: {value}"
    if found.reason == "jump":
        return f"{label(signal)} {cell(diagnosed.view.run, signal, place - 1)['text']} to {value}"
    far = "" if found.deviation is None else f" ({mads(found.deviation)} MADs)"
    return f"{label(signal)} left its baseline: {value}{far}"


def _events(diagnosed: Diagnosed) -> Iterator[Moment]:
    """The events of the rows that the figure shows."""
    run = diagnosed.view.run
    start, stop = around(diagnosed)
    places = {row_of(run, place): place for place in range(start, stop)}
    for event in run.events:
        row = event.get("row")
        other = event.get("optimizer") not in (None, diagnosed.view.optimizer)
        if isinstance(row, int) and row in places and not other:
            told = event_row(event)
            yield places[row], "event", ": ".join(text for text in (told["kind"], told["text"]) if text)


def _scale(diagnosed: Diagnosed) -> Iterator[Moment]:
    """The first changes of the loss scale within the incident and right after it."""
    run, first = diagnosed.view.run, diagnosed.incident.first_bad.position
    stop = min(len(run), diagnosed.incident.last + 2)
    for place in _changes(run, max(1, first), stop)[:CHANGES]:
        before, after = (cell(run, "loss_scale", at)["text"] for at in (place - 1, place))
        yield int(place), "scale", f"loss scale {before} to {after}"


def _changes(run: Run, start: int, stop: int) -> Any:
    values, known = run.values("loss_scale"), run.kind("loss_scale") == Kind.FINITE
    here = np.arange(start, stop)
    return here[known[here] & known[here - 1] & (values[here] != values[here - 1])]
