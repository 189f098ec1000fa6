"""A column that is worked out for the rows that are asked for: of a long run few ever are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.run import Floats

Positions = NDArray[np.int64]


BLOCK = 16


class LazyColumn:
    """[rows] numbers, indexed as an array is: by a position, a slice, positions or a mask.

    `work_out` gives the numbers of the positions it is told. Whatever wants an array of it gets all of them. Where
    they are `dear`, they are kept; a row that is asked for by itself is worked out with those around it, which are
    asked for next.
    """

    def __init__(self, length: int, work_out: Callable[[Positions], Floats], dear: bool = False) -> None:
        self._length = length
        self._work_out = work_out
        # of no memory where nothing is put
        self._kept = np.zeros(length) if dear else None
        self._known = np.zeros(length if dear else 0, dtype=np.bool_)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, rows: int | np.integer[Any]) -> float: ...
    @overload
    def __getitem__(self, rows: slice | NDArray[Any]) -> Floats: ...
    def __getitem__(self, rows: int | np.integer[Any] | slice | NDArray[Any]) -> float | Floats:
        if isinstance(rows, slice):
            return self._at(np.arange(*rows.indices(self._length)))
        if isinstance(rows, np.ndarray):
            return self._at(np.flatnonzero(rows) if rows.dtype == np.bool_ else rows)
        return float(self._at(np.array([range(self._length)[int(rows)]]))[0])

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # values may be as large as a float can hold
    def _at(self, rows: Positions) -> Floats:
        if self._kept is None:
            return self._work_out(rows)
        known = self._known[rows]
        if not known.all():
            new = rows[~known] if len(rows) > 1 else self._around(int(rows[0]))
            self._kept[new] = self._work_out(new)
            self._known[new] = True
        return self._kept[rows]

    def _around(self, row: int) -> Positions:
        first = row // BLOCK * BLOCK
        return np.arange(first, min(first + BLOCK, self._length))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype=dtype)


class LazyMask:
    """[rows] of yes or no, indexed as an array is; `work_out` gives what stands at the rows it is told."""

    def __init__(self, work_out: Callable[[Any], Any]) -> None:
        self._work_out = work_out

    @overload
    def __getitem__(self, rows: int | np.integer[Any]) -> bool: ...
    @overload
    def __getitem__(self, rows: slice | NDArray[Any]) -> Mask: ...
    def __getitem__(self, rows: int | np.integer[Any] | slice | NDArray[Any]) -> bool | Mask:
        found: bool | Mask = self._work_out(rows)
        return found


def last_of(mask: Mask, row: int, count: int) -> Positions:
    """The last rows of a mask before one, so many if there are; no more is looked at than it takes."""
    width = 2 * count
    while True:
        first = max(row - width, 0)
        found = first + np.flatnonzero(mask[first:row])
        if len(found) >= count or not first:
            return found[-count:]
        width *= 4


Column: TypeAlias = Floats | LazyColumn


def padded(column: Column, length: int) -> LazyColumn:
    """The column with NaN in the rows beyond it."""

    def work_out(rows: Positions) -> Floats:
        found = np.full(len(rows), np.nan)
        known = rows < len(column)
        found[known] = column[rows[known]]
        return found

    return LazyColumn(length, work_out)
