"""Extremes: the minimum and maximum of segments of rows, and flags for every kind of cell in them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from spikeview.cells import Kind, compact
from spikeview.run import Floats

Flags = NDArray[np.uint8]

DRAWN: Final = np.uint8(1 << Kind.FINITE)
NAN: Final = np.uint8(1 << Kind.NAN)
POS_INF: Final = np.uint8(1 << Kind.POS_INF)
NEG_INF: Final = np.uint8(1 << Kind.NEG_INF)
NOT_APPLICABLE: Final = np.uint8(1 << Kind.NOT_APPLICABLE)
NOT_RECORDED: Final = np.uint8(1 << Kind.NOT_RECORDED)
ZERO: Final = np.uint8(1 << 6)
NEGATIVE: Final = np.uint8(1 << 7)


def row_flags(values: Floats, kinds: NDArray[np.uint8], positive: bool) -> Flags:
    """The flag of every cell, [rows]."""
    flags = np.left_shift(np.uint8(1), kinds)
    if positive:
        finite = kinds == Kind.FINITE
        flags[finite & (values == 0)] = ZERO
        flags[finite & (values < 0)] = NEGATIVE
    return flags


def extremes(
    values: Floats, kinds: NDArray[np.uint8], positive: bool, starts: NDArray[np.int64]
) -> tuple[Floats, Floats, Flags]:
    """Extremes and flags of the segments that begin at `starts` and are not empty."""
    if not compact(kinds).any() and not (positive and values.min() <= 0):
        flags = np.full(len(starts), DRAWN, dtype=np.uint8)
        return np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts), flags
    each = row_flags(values, kinds, positive)
    drawn = each == DRAWN
    low = np.minimum.reduceat(np.where(drawn, values, np.inf), starts)
    high = np.maximum.reduceat(np.where(drawn, values, -np.inf), starts)
    return low, high, np.bitwise_or.reduceat(each, starts)
