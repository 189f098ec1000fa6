"""From the columns of a log to a Run: rows numbered, resumes found, each value beside the step it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recorder.schema import COLUMNS, SCHEMA_VERSION, STEPS
from recorder.store.documents import plain
from recorder.store.rewinds import find_rewinds, told
from spikeview.format import label, shown
from spikeview.importers.joined import repeats
from spikeview.importers.table import Chunks
from spikeview.meaning import AFTER, BEFORE, Meaning, described
from spikeview.run import Run

Whole = NDArray[np.int32]

IDENTITY = tuple(column.name for column in STEPS if column.phase == "identity")


def assemble(
    path: Path | str,
    log: str,
    columns: Mapping[str, Any],
    meanings: Mapping[str, Meaning],
    events: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[str] = (),
) -> Run:
    """The run of a log whose rows are given as columns of equal length, by their names in a Run.

    Values are anything that Arrow takes; those of other than schema columns keep their type. Where `step` goes back a
    new segment begins. Columns read after the update are moved to the step they hold for.
    """
    table = {name: _chunks(name, values) for name, values in columns.items()}
    rows = len(next(iter(table.values()))) if table else 0
    step = table.get("step", _nothing(rows, "step"))
    segment, micro_step = _places(step)
    table |= {
        "row": pa.chunked_array([pa.array(np.arange(rows))]),
        "segment": pa.chunked_array([pa.array(segment)]),
        "step": step,
        "micro_step": table.get("micro_step", micro_step),
    }
    if "grad_norm" in table:
        table["grad_norm_source"] = _source(table["grad_norm"], meanings.get("grad_norm"))
    for name, said in meanings.items():
        if said.update == AFTER and name in table:
            table[name] = _moved(table[name], step, segment)
    table |= {name: _nothing(rows, name) for name in IDENTITY if name not in table}
    kept = [name for name in COLUMNS if name in table and (name in IDENTITY or table[name].null_count < rows)]
    kept += [name for name in table if name not in COLUMNS and table[name].null_count < rows]
    held = pa.table({name: table[name] for name in kept})
    told_events = [plain(event) for event in (*events, *_resumes(step, segment))]
    told_events.sort(key=lambda event: event.get("row", -1))
    rewinds = find_rewinds(held, told_events)
    notes = [_as_logged(log, meanings, kept), *notes]
    manifest = {"schema_version": SCHEMA_VERSION, "closed": True, **described(log, Path(path).name, meanings, notes)}
    return Run(str(path), held, plain(manifest), tuple(told_events), notes=(*notes, *told(rewinds)), rewinds=rewinds)


def _source(norm: Chunks, said: Meaning | None) -> Chunks:
    """Who measured the norm: a loop that tells it as it was before clipping, else one who may have been too late."""
    source = "observed" if said is not None and said.clipping == BEFORE else "at_step"
    return pc.if_else(norm.is_valid(), pa.scalar(source), pa.scalar(None, pa.string()))


def _nothing(rows: int, name: str) -> Chunks:
    return pa.chunked_array([pa.array([None], COLUMNS[name].arrow)]).take(np.zeros(rows, np.int64))


def _chunks(name: str, values: Any) -> Chunks:
    array = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([pa.array(values)])
    column = COLUMNS.get(name)
    if column is None or array.type == column.arrow:
        return array
    return pc.cast(array, column.arrow, safe=False)


def _places(step: Chunks) -> tuple[Whole, Chunks]:
    """The segment of each row, and its place among the rows of one step."""
    known = step.is_valid().to_numpy()
    steps = step.fill_null(0).to_numpy()
    told = np.flatnonzero(known)
    back = told[1:][np.diff(steps[told]) < 0]
    segment = np.zeros(len(steps), dtype=np.int32)
    segment[back] = 1
    segment = np.cumsum(segment, dtype=np.int32) if len(back) else segment
    same = repeats(step)
    micro = np.zeros(len(steps), dtype=np.int32)
    if same.any():
        at = np.arange(len(steps), dtype=np.int32)
        micro = at - np.maximum.accumulate(np.where(same, 0, at))
    return segment, pa.chunked_array([pa.array(micro, mask=~known)])


def _moved(column: Chunks, step: Chunks, segment: Whole) -> Chunks:
    """A column read after each update, one row later: there it is what the row ran under.

    Only where every step is a row: in a sparser log the row after is not the step after, and a value stays at its own.
    """
    steps = step.fill_null(0).to_numpy()
    apart = np.diff(steps)
    forward = apart[apart > 0]
    if not len(forward) or np.median(forward) > 1:
        return column
    at = np.arange(len(steps)) - 1
    follows = np.zeros(len(steps), dtype=np.bool_)
    follows[1:] = (apart >= 0) & (apart <= 1) & (np.diff(segment) == 0)
    return column.take(pa.array(at, mask=~follows))


def _resumes(step: Chunks, segment: Whole) -> list[dict[str, Any]]:
    starts = np.flatnonzero(np.diff(segment)) + 1
    return [
        {
            "kind": "resume",
            "row": int(row),
            "step": step[int(row)].as_py(),
            "text": f"the log goes back to step {step[int(row)].as_py()}",
        }
        for row in starts
    ]


def _as_logged(log: str, meanings: Mapping[str, Meaning], kept: Sequence[str]) -> str:
    """One line on what the numbers of the log mean."""
    said = []
    for column, each in meanings.items():
        named = "" if each.name in (column, label(column)) else f" = {shown(each.name)}"
        means = f" ({each})" if str(each) else ""
        if column in kept and (named or means):
            said.append(f"{label(column)}{named}{means}")
    return f"read as {log}" + (f": {'; '.join(said)}" if said else "")
