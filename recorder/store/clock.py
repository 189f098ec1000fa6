"""The steps of a run as its clock: where they fall, and the numbers of the rows beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from recorder.store.lazy_table import Table, stretches

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]


def falls(table: Table) -> tuple[Numbers, Mask]:
    """Where the step falls, or does not rise as a segment begins, and which of these begin a segment."""
    places, begins = [np.zeros(0, np.int64)], [np.zeros(0, np.bool_)]
    start, step, segment = 0, None, 0
    for count, steps, segments in _clocks(table):
        if step is None:
            step, segment = steps[0], segments[0]
        before = np.append(step, steps[:-1])
        if not (steps > before).all():
            new = segments != np.append(segment, segments[:-1])
            here = np.flatnonzero((steps < before) | new & (steps == before))
            places.append(start + here)
            begins.append(new[here])
        start, step, segment = start + count, steps[-1], segments[-1]
    return np.concatenate(places), np.concatenate(begins)


def _clocks(table: Table) -> Iterator[tuple[int, Numbers, Numbers]]:
    """How many rows, and their steps and segments, by stretches; of a part that says so the first and the last."""
    names = [name for name in ("step", "segment") if name in table.column_names]
    step, segment = 0, 0
    for said, rows in stretches(table):
        if said.steps is not None and said.segment is not None:
            steps, segments = np.array(said.steps), np.full(2, said.segment)
        else:
            columns = rows.select(names)
            steps = filled(columns.column(0), step)
            segments = filled(columns.column(1), segment) if len(names) > 1 else np.zeros_like(steps)
        yield rows.num_rows, steps, segments
        step, segment = steps[-1], segments[-1]


def filled(column: Any, before: int = 0) -> Numbers:
    """A column of whole numbers; where it holds nothing, the number before."""
    whole = pc.fill_null(column, 0) if column.null_count else column
    values: Numbers = whole.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    if not column.null_count:
        return values
    last = np.maximum.accumulate(np.where(_recorded(column), np.arange(1, len(values) + 1), 0))
    return np.append(before, values)[last]


def row_numbers(table: Table) -> Numbers:
    """The recorder's numbers of the rows; where there are none, their positions."""
    positions = np.arange(table.num_rows)
    if "row" not in table.column_names:
        return positions
    column: Any = table["row"]
    return np.where(_recorded(column), filled(column), positions)


def _recorded(column: Any) -> Mask:
    mask: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return mask
