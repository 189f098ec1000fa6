"""Columns of a long run, put together of stretches of its rows: several are read at a time, none copied after."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from recorder.schema import COLUMNS, Mask
from recorder.store.lazy_table import STRETCH, LazyTable
from spikeview.cancelling import checkpoint
from spikeview.cells import compact, not_null, to_numpy

THREADS = min(4, os.cpu_count() or 1)
_KINDS: dict[str, type] = {"bool": np.bool_, "int32": np.int64, "int64": np.int64, "double": np.float64}

Made = TypeVar("Made")


def in_stretches(first: int, last: int, make: Callable[[int], Made]) -> list[Made]:
    """What `make` makes of each stretch of rows, given the position of its first one, in order.

    Several at a time: Arrow and numpy let go of the interpreter. Raises what `make` raises, and then begins no other.
    """
    found, pool = [], ThreadPoolExecutor(THREADS)
    try:
        for made in pool.map(make, range(first, last, STRETCH)):
            checkpoint()
            found.append(made)
    finally:
        pool.shutdown(cancel_futures=True)
    return found


def can_be_gathered(name: str) -> bool:
    """Whether it is known before a column is read which numbers it holds."""
    return name in COLUMNS and COLUMNS[name].dtype in _KINDS


def dtype_of(name: str) -> np.dtype[Any]:
    """What the values of such a column are held as."""
    return np.dtype(_KINDS[COLUMNS[name].dtype])


class Gathered:
    """A column from a row on, [rows]: its values, and where it is null, in stretches that say so."""

    def __init__(self, name: str, first: int, rows: int) -> None:
        self.name, self.first = name, first
        self.values: NDArray[Any] = np.empty(rows, dtype=dtype_of(name))
        self._recorded: dict[int, Mask] = {}

    def take(self, first: int, values: NDArray[Any], recorded: Mask) -> None:
        """Put a stretch in its place."""
        into = slice(first - self.first, first - self.first + len(values))
        self.values[into] = values
        if not compact(recorded).all():
            self._recorded[into.start] = recorded

    @property
    def recorded(self) -> Mask:
        """[rows]: where the column is not null."""
        everywhere = np.broadcast_to(np.True_, len(self.values))  # takes no memory
        if not self._recorded:
            return everywhere
        mask = everywhere.copy()
        for first, recorded in self._recorded.items():
            mask[first : first + len(recorded)] = recorded
        return mask


def gather(table: LazyTable, names: Sequence[str], first: int) -> list[Gathered]:
    """Columns of numbers from a row on; each stretch is read once."""
    found = [Gathered(name, first, table.num_rows - first) for name in names]

    def put(begin: int) -> None:
        rows = table.slice(begin, STRETCH).select(names)
        for column in found:
            column.take(begin, to_numpy(rows[column.name]), not_null(rows[column.name]))

    in_stretches(first, table.num_rows, put)
    return found
