"""Whether the rows of a run are all there, each once and in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

KEYS = ("row", "segment", "optimizer")
_NAMED = 5


def order_faults(table: pa.Table) -> list[str]:
    """What is wrong with the numbers of these rows, in a line for each kind; `table` has the columns of KEYS."""
    rows = _numbers(table, "row")
    segments = _numbers(table, "segment")
    names = table["optimizer"]
    optimizer = pc.index_in(names, pc.unique(names.combine_chunks())).to_numpy()
    found: list[str] = []
    # A log that was imported has no segments and no names of optimizers at all.
    counts = {name: table[name].null_count for name in KEYS}
    if nulls := sum(count for name, count in counts.items() if name == "row" or count < len(rows)):
        found.append(f"{nulls} numbers of rows or segments, or names of optimizers, are null")
    present = np.unique(rows)
    before = np.append(-1, present)
    gaps = np.flatnonzero(np.diff(before) > 1)
    if len(gaps):
        spans = [(int(before[gap]) + 1, int(present[gap]) - 1) for gap in gaps]
        count = sum(last - first + 1 for first, last in spans)
        found.append(f"{plural(count, 'row')} missing: {_spans(spans)}")
    late = np.flatnonzero(np.diff(rows) < 0) + 1
    if len(late):
        found.append(f"out of order: row {rows[late[0]]} comes after row {rows[late[0] - 1]}{_more(len(late))}")
    order = np.lexsort((optimizer, rows))
    twice = order[1:][(np.diff(rows[order]) == 0) & (np.diff(optimizer[order]) == 0)]
    if len(twice):
        name = names[int(twice[0])].as_py()
        found.append(f"recorded twice: row {rows[twice[0]]} of {name}{_more(len(twice))}")
    back = np.flatnonzero(np.diff(segments) < 0) + 1
    if len(back):
        found.append(f"segment {segments[back[0]]} comes after segment {segments[back[0] - 1]} at row {rows[back[0]]}")
    return found


def _numbers(table: pa.Table, name: str) -> NDArray[np.int64]:
    column: pa.ChunkedArray[Any] = table[name]
    return np.asarray(column.fill_null(-1)).astype(np.int64)  # type: ignore[arg-type]  # the stubs want a Scalar


def _spans(spans: Sequence[tuple[int, int]]) -> str:
    """`3, 10 to 14 and 2 more gaps`."""
    named = ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in spans[:_NAMED])
    more = len(spans) - _NAMED
    return named if more <= 0 else f"{named} and {plural(more, 'more gap')}"


def _more(count: int) -> str:
    return f", and {count - 1:,} more" if count > 1 else ""


def plural(count: int, thing: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")
