"""Hugging Face Trainer: `trainer_state.json`, alone or in the newest checkpoint of a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spikeview.format import plural
from spikeview.importers import tabular
from spikeview.importers.errors import RunError
from spikeview.importers.importer import Asked, Importer
from spikeview.importers.source import Source, refuse_pointer
from spikeview.importers.table import Read, from_rows
from spikeview.meaning import ALL_RANKS, BEFORE, HIDDEN, MEAN, STEP, Meaning
from spikeview.run import Run

LOG = "a Hugging Face log"
STATE = "trainer_state.json"
_CHECKPOINT = re.compile(r"checkpoint-(\d+)")

# The rate is read before the scheduler moves in some versions of the trainer and after it in others: it may be that of
# the step after. `logging_nan_inf_filter` is on unless it is turned off, and puts the mean in the place of a NaN.
MEANINGS = {
    "loss": Meaning("loss", MEAN, BEFORE, ALL_RANKS, nonfinite=HIDDEN),
    "grad_norm": Meaning("grad_norm", STEP, BEFORE, ALL_RANKS, clipping=BEFORE),
    "lr": Meaning("learning_rate", STEP),
}


def declines(source: Source) -> str | None:
    """None for a state, and for a folder that holds one or checkpoints with one."""
    if source.is_folder:
        return None if _states(source.path) else f"no {STATE}"
    return None if source.head.lstrip()[:1] == b"{" and b'"log_history"' in source.head else "no log_history"


def read(source: Source, asked: Asked) -> Run:
    """The history of the newest state; older ones of the same run are beginnings of it."""
    states = _states(source.path) if source.is_folder else [source.path]
    newest, history = states[-1], _history(states[-1])
    others = [state for state in states[:-1] if not _begins(history, _history(state))]
    notes = [f"{plural(len(states), 'state')} found; read from {newest.parent.name}, the newest"] if states[1:] else []
    if others:
        notes.append(f"of another run, and left out: {', '.join(state.parent.name for state in others)}")
    rows, events, malformed = _training(history)
    if not rows:
        what = f"its log_history holds no entry on training{f', and {len(events)} others' if events else ''}"
        raise RunError(f"{newest}: {what}; train past the first logging_steps, or give another checkpoint")
    return tabular.run_of(tabular.Log(newest, LOG, Read(from_rows(rows), malformed), MEANINGS, events, notes), asked)


def is_its_log(names: Sequence[str]) -> bool:
    """Whether metrics of these names were written by the trainer's own integrations."""
    return {"train/loss", "train/learning_rate", "train/epoch"} <= set(names)


def _states(folder: Path) -> list[Path]:
    """The states in a folder and in its checkpoints, oldest first."""
    found = [
        (int(match[1]), place / STATE)
        for place in folder.glob("checkpoint-*")
        if (match := _CHECKPOINT.fullmatch(place.name))
    ]
    states = [state for _, state in sorted(found) if state.is_file()]
    return [*states, folder / STATE] if (folder / STATE).is_file() else states


def _history(path: Path) -> list[Any]:
    refuse_pointer(path)
    try:
        state = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise RunError(
            f"{path}: is no sound JSON ({error}); restore it from a copy, or give an older checkpoint"
        ) from error
    history = state.get("log_history") if isinstance(state, dict) else None
    if not isinstance(history, list):
        raise RunError(f"{path}: has no log_history, so it is no trainer state; give a {STATE}")
    return history


def _training(history: Sequence[Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    """The entries on training, those on evaluation and the whole run as events, and how many are neither."""
    rows: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    for entry in history:
        if not isinstance(entry, dict):
            continue
        if entry.keys() & {"loss", "grad_norm", "learning_rate"}:
            rows.append(entry)
        else:
            kind = {"kind": "validation", "loss": entry["eval_loss"]} if "eval_loss" in entry else {"kind": "metrics"}
            events.append({**entry, **kind, "row": max(0, len(rows) - 1)})
    return rows, events, len(history) - len(rows) - len(events)


def _begins(history: Sequence[Any], earlier: Sequence[Any]) -> bool:
    """Whether an earlier history is where this one begins. As text, since NaN is unlike itself."""
    return json.dumps(history[: len(earlier)]) == json.dumps(earlier)


HUGGING_FACE = Importer("trainer_state.json", declines, read)
