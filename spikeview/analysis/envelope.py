"""Envelope: the true minimum and maximum of the rows behind every column of pixels, at any zoom.

Blocks over the rows, and larger ones over those: a wide view reads whole blocks and a narrow one its rows, so the cost
follows the number of pixel columns and not the length of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from spikeview.cancelling import checkpoint
from spikeview.run import Floats, Kind

BLOCK: Final = 64
LARGE: Final = 16  # blocks in a larger one
SIZES: Final = (LARGE * BLOCK, BLOCK)
CHUNK: Final = 4096 * BLOCK

Flags = NDArray[np.uint8]
Positions = NDArray[np.int64]

DRAWN: Final = np.uint8(1 << Kind.FINITE)
NAN: Final = np.uint8(1 << Kind.NAN)
POS_INF: Final = np.uint8(1 << Kind.POS_INF)
NEG_INF: Final = np.uint8(1 << Kind.NEG_INF)
NOT_APPLICABLE: Final = np.uint8(1 << Kind.NOT_APPLICABLE)
NOT_RECORDED: Final = np.uint8(1 << Kind.NOT_RECORDED)
ZERO: Final = np.uint8(1 << 6)
NEGATIVE: Final = np.uint8(1 << 7)


class Readable(Protocol):
    """The values of rows, or their kinds, as they are asked of an array."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice | Positions, /) -> NDArray[Any]: ...


@dataclass(frozen=True, eq=False)
class Blocks:
    """The extremes and flags of every `size` rows, [blocks]."""

    size: int
    low: Floats
    high: Floats
    flags: Flags


@dataclass(frozen=True, eq=False)
class Pyramid:
    """A series of rows with the extremes and the flags of every block of 64 of them, and of larger ones.

    `values` is [rows] in the signal's units, `kinds` [rows] says what each cell is (`run.Kind`): arrays, or what reads
    the rows that it is asked for. `low` and `high` are [blocks], over the cells that can be drawn, +inf and -inf where
    a block has none; `flags` [blocks] holds one bit for every kind of cell in the block. `positive` is for a log axis:
    zero and below are flagged ZERO and NEGATIVE instead of drawn.
    """

    values: Readable
    kinds: Readable
    large: Blocks
    small: Blocks
    positive: bool

    def __len__(self) -> int:
        return len(self.values)

    @property
    def low(self) -> Floats:
        return self.small.low

    @property
    def high(self) -> Floats:
        return self.small.high

    @property
    def flags(self) -> Flags:
        return self.small.flags


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


def row_flags(values: Floats, kinds: NDArray[np.uint8], positive: bool) -> Flags:
    """The flag of every cell, [rows]."""
    flags = np.left_shift(np.uint8(1), kinds)
    if positive:
        finite = kinds == Kind.FINITE
        flags[finite & (values == 0)] = ZERO
        flags[finite & (values < 0)] = NEGATIVE
    return flags


def build(values: Floats, kinds: NDArray[np.uint8], positive: bool = False, known: Pyramid | None = None) -> Pyramid:
    """The pyramid over a series; the last, shorter block is kept. Nothing of the rows is copied.

    `known` is the pyramid over an earlier reading of the series: blocks in which nothing changed are not built again.
    """
    same = 0 if known is None or known.positive != positive else _unchanged(known, values, kinds) // BLOCK
    made = [] if known is None else [first_blocks(known, same)]
    for first in range(same * BLOCK, len(values), CHUNK):
        checkpoint()
        rows = slice(first, first + CHUNK)
        made.append(blocks(values[rows], kinds[rows], positive))
    return over(values, kinds, made, positive)


def blocks(values: Floats, kinds: NDArray[np.uint8], positive: bool) -> Blocks:
    """The extremes and flags of every BLOCK rows of a stretch that begins with a block; the last may be shorter."""
    return Blocks(BLOCK, *_extremes(values, kinds, positive, np.arange(0, len(values), BLOCK)))


def first_blocks(pyramid: Pyramid, count: int) -> Blocks:
    """So many blocks of a pyramid, from its first on."""
    return Blocks(BLOCK, pyramid.low[:count], pyramid.high[:count], pyramid.flags[:count])


def over(values: Readable, kinds: Readable, made: Sequence[Blocks], positive: bool) -> Pyramid:
    """The pyramid over a series of which the blocks were made stretch by stretch: all but the last are whole."""
    low = np.concatenate([np.zeros(0), *(each.low for each in made)])
    high = np.concatenate([np.zeros(0), *(each.high for each in made)])
    flags = np.concatenate([np.zeros(0, dtype=np.uint8), *(each.flags for each in made)])
    small = Blocks(BLOCK, low, high, flags)
    large = Blocks(LARGE * BLOCK, *_reduced(small, slice(0, len(low)), np.arange(0, len(low), LARGE)))
    return Pyramid(values, kinds, large, small, positive)


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
        found = _extremes(pyramid.values[rows], pyramid.kinds[rows], pyramid.positive, at[held] - at[0])
    else:
        level = next(each for each in (pyramid.large, pyramid.small) if each.size == cuts.size)
        blocks = slice(at[0] // cuts.size, -(-at[-1] // cuts.size))
        found = _reduced(level, blocks, at[held] // cuts.size - blocks.start)
    columns.low[held], columns.high[held], columns.flags[held] = found
    return columns


def _reduced(level: Blocks, blocks: slice, starts: Positions) -> tuple[Floats, Floats, Flags]:
    """Extremes and flags of the segments of some blocks that begin at `starts`."""
    low, high = np.minimum.reduceat(level.low[blocks], starts), np.maximum.reduceat(level.high[blocks], starts)
    return low, high, np.bitwise_or.reduceat(level.flags[blocks], starts)


def _unchanged(known: Pyramid, values: Floats, kinds: NDArray[np.uint8]) -> int:
    """How many of the first rows are what they were, bit by bit."""
    rows = min(len(known), len(values))
    bits = [np.ascontiguousarray(each).view(np.int64) for each in (known.values[:rows], values[:rows])]
    differs = (bits[0] != bits[1]) | (known.kinds[:rows] != kinds[:rows])
    return int(differs.argmax()) if differs.any() else rows


def _extremes(
    values: Floats, kinds: NDArray[np.uint8], positive: bool, starts: Positions
) -> tuple[Floats, Floats, Flags]:
    """Extremes and flags of the segments that begin at `starts` and are not empty."""
    if not kinds.any() and not (positive and values.min() <= 0):
        flags = np.full(len(starts), DRAWN, dtype=np.uint8)
        return np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts), flags
    each = row_flags(values, kinds, positive)
    drawn = each == DRAWN
    low = np.minimum.reduceat(np.where(drawn, values, np.inf), starts)
    high = np.maximum.reduceat(np.where(drawn, values, -np.inf), starts)
    return low, high, np.bitwise_or.reduceat(each, starts)


def _empty(width: int) -> Envelope:
    return Envelope(np.full(width, np.inf), np.full(width, -np.inf), np.zeros(width, dtype=np.uint8))
