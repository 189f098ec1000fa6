"""Rows of one step made one: loggers write what they learn of a step in several lines."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spikeview.importers.table import Chunks

Whole = NDArray[np.int64]

# These are on every line and may differ between two lines of one step.
CLOCKS = re.compile(r"time|epoch|elapsed|remaining|percentage")


def by_step(columns: Mapping[str, Chunks]) -> dict[str, Chunks]:
    """The columns with neighbouring rows of one step joined, where no two of them hold a value for the same column."""
    if "step" not in columns:
        return dict(columns)
    same = repeats(columns["step"])
    if not same.any():
        return dict(columns)
    told = {name: column.is_valid().to_numpy() for name, column in columns.items()}
    starts = np.flatnonzero(~same)
    disjoint = np.ones(len(starts), dtype=np.bool_)
    for name, held in told.items():
        if name != "step" and not CLOCKS.search(name):
            disjoint &= np.add.reduceat(held.astype(np.int64), starts) <= 1
    same &= disjoint[np.cumsum(~same) - 1]
    starts = np.flatnonzero(~same)
    return {name: _last_told(column, told[name], starts) for name, column in columns.items()}


def repeats(step: Chunks) -> NDArray[np.bool_]:
    """[rows]: whether the row before has the same step."""
    known, steps = step.is_valid().to_numpy(), step.fill_null(0).to_numpy()
    same = np.zeros(len(steps), dtype=np.bool_)
    same[1:] = (np.diff(steps) == 0) & known[1:] & known[:-1]
    return same


def _last_told(column: Chunks, held: NDArray[np.bool_], starts: Whole) -> Chunks:
    """Of every group of rows the last value there is."""
    at = np.maximum.reduceat(np.where(held, np.arange(len(held)), -1), starts)
    return column.take(pa.array(np.maximum(at, 0), mask=at < 0))
