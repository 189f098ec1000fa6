"""Envelope: the true minimum and maximum of the rows behind every column of pixels, at any zoom.

Blocks over the rows, and larger ones over those: a wide view reads whole blocks and a narrow one its rows, so the cost
follows the number of pixel columns and not the length of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spikeview.analysis.extremes import DRAWN, Flags, extremes
from spikeview.analysis.pyramid import BLOCK, LARGE, Pyramid, reduced
from spikeview.run import Floats

SIZES: Final = (LARGE * BLOCK, BLOCK)

Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cuts:
    """Where the columns of a view begin and end: `at` is [width + 1] positions of rows that rise.

    `held` are the columns that hold rows; `size` the rows of the blocks of which none is cut, 1 where they are.
    """

    at: Positions
    held: Positions
    size: int


@dataclass(frozen=True, eq=False)
class Envelope:
    """What each column of pixels shows; arrays are [width].

    `low` is +inf where nothing can be drawn, `flags` 0 where the column holds no row.
    """

    low: Floats
    high: Floats
    flags: Flags

    @property
    def drawn(self) -> NDArray[np.bool_]:
        held: NDArray[np.bool_] = np.not_equal(self.flags & DRAWN, 0)
        return held


@lru_cache(maxsize=4)  # all series of a window are drawn in the same view
def edges(first: float, last: float, width: int, rows: int) -> Cuts:
    """Where column i holds the rows edges[i] .. edges[i + 1] - 1 of the view [first, last), for `width` columns.

    Where columns are wide their edges are the nearest ones of blocks, at most a quarter of a pixel away. Raises
    ValueError for a view or a width that is not positive.
    """
    if width < 1 or not last > first:
        raise ValueError(f"a view needs a positive width and extent, not {width} columns over [{first}, {last})")
    cuts = np.ceil(first + (last - first) / width * np.arange(width + 1))
    return snapped(np.clip(cuts, 0, rows).astype(np.int64), rows)


def snapped(at: Positions, rows: int) -> Cuts:
    """Cuts where they are, or, where they lie two blocks apart and more, moved to the nearest edges of blocks.

    The largest such blocks are taken. None of them is cut then, and the end of the run stays the end.
    """
    apart = (at[-1] - at[0]) / (len(at) - 1)
    size = next((size for size in SIZES if apart >= 2 * size), 1)
    if size > 1:
        at = np.where(at == rows, rows, np.minimum((at + size // 2) // size * size, rows))
    return Cuts(at, np.flatnonzero(np.diff(at) > 0), size)


def envelope(pyramid: Pyramid, first: float, last: float, width: int) -> Envelope:
    """The extremes and flags of every column of pixels of the view [first, last), in positions of rows.

    Raises ValueError as `edges`.
    """
    return between(pyramid, edges(first, last, width, len(pyramid)))


def between(pyramid: Pyramid, cuts: Cuts) -> Envelope:
    """The extremes and flags of the rows between each cut and the next."""
    at, held = cuts.at, cuts.held
    columns = _empty(len(at) - 1)
    if len(held) == 0:
        return columns
    if cuts.size == 1:
        rows = slice(at[0], at[-1])
        found = extremes(pyramid.values[rows], pyramid.kinds[rows], pyramid.positive, at[held] - at[0])
    else:
        level = next(each for each in (pyramid.large, pyramid.small) if each.size == cuts.size)
        blocks = slice(at[0] // cuts.size, -(-at[-1] // cuts.size))
        found = reduced(level, blocks, at[held] // cuts.size - blocks.start)
    columns.low[held], columns.high[held], columns.flags[held] = found
    return columns


def _empty(width: int) -> Envelope:
    return Envelope(np.full(width, np.inf), np.full(width, -np.inf), np.zeros(width, dtype=np.uint8))
