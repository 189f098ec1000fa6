"""The last checkpoint that an incident cannot have touched: where to go back to, and what to feed its batches to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spikeview.format import plural, shown
from spikeview.rules.diagnosis import Diagnosed, Diagnosis
from spikeview.rules.wording import row_of
from spikeview.run import Run

Event = Mapping[str, Any]


def untouched(diagnosis: Diagnosis) -> list[Event]:
    """The checkpoints that were saved outside every incident."""
    saved = _saved(diagnosis.run)
    rows = np.array([event["row"] for event in saved], dtype=np.int64)
    touched = np.zeros(len(saved), dtype=np.bool_)
    for one in diagnosis.incidents if saved else ():
        run, incident = one.view.run, one.incident
        touched |= (row_of(run, incident.first_bad.position) <= rows) & (rows <= row_of(run, incident.last))
    return [event for event, bad in zip(saved, touched, strict=True) if not bad]


def last_known_good(diagnosed: Diagnosed, good: Sequence[Event]) -> dict[str, Any]:
    """`name` and `row` of the checkpoint, None where there is none; `text` says what it is, or why there is none.

    It is the last of the `good` ones that was saved before the accused transition, and that the run had not left
    behind by then.
    """
    run, first = diagnosed.view.run, diagnosed.incident.first_bad.position
    accused = row_of(run, first if diagnosed.transition is None else diagnosed.transition)
    what = "the accused transition" if diagnosed.transition is not None else "the first bad row"
    left = [stretch for rewind in run.rewinds if rewind.at <= row_of(run, first) for stretch in rewind.rows]
    before = [event for event in good if event["row"] < accused]
    kept = [event for event in before if not any(begin <= event["row"] <= end for begin, end in left)]
    if kept:
        name, row = str(kept[-1].get("name", "")), int(kept[-1]["row"])
        told = f"{shown(name) or 'Without a name'}, saved after row {row}: {plural(accused - row, 'row')} before {what}"
        return {"name": name, "row": row, "text": f"{told}, and outside every incident."}
    saved = sum(event["row"] < accused for event in _saved(run))
    if not saved:
        return {"name": None, "row": None, "text": f"No checkpoint was recorded before {what}, row {accused}."}
    why = "lies within an incident or was left behind" if saved == 1 else "lie within incidents or were left behind"
    text = f"None is known to be good: {plural(saved, 'checkpoint')} from before {what}, row {accused}, {why}."
    return {"name": None, "row": None, "text": text}


def _saved(run: Run) -> list[Event]:
    return [event for event in run.events if event.get("kind") == "checkpoint" and isinstance(event.get("row"), int)]
