"""Pyramid: blocks over the rows of a series with the extremes of each, and larger ones over those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from spikeview.analysis.extremes import Flags, extremes
from spikeview.cancelling import checkpoint
from spikeview.run import Floats

BLOCK: Final = 64
LARGE: Final = 16  # blocks in a larger one
CHUNK: Final = 4096 * BLOCK

Positions = NDArray[np.int64]


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

    `values` is [rows] in the signal's units, `kinds` [rows] has the `Kind` of each cell: arrays, or what reads
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
    return Blocks(BLOCK, *extremes(values, kinds, positive, np.arange(0, len(values), BLOCK)))


def first_blocks(pyramid: Pyramid, count: int) -> Blocks:
    """So many blocks of a pyramid, from its first on."""
    return Blocks(BLOCK, pyramid.low[:count], pyramid.high[:count], pyramid.flags[:count])


def over(values: Readable, kinds: Readable, made: Sequence[Blocks], positive: bool) -> Pyramid:
    """The pyramid over a series of which the blocks were made stretch by stretch: all but the last are whole."""
    low = np.concatenate([np.zeros(0), *(each.low for each in made)])
    high = np.concatenate([np.zeros(0), *(each.high for each in made)])
    flags = np.concatenate([np.zeros(0, dtype=np.uint8), *(each.flags for each in made)])
    small = Blocks(BLOCK, low, high, flags)
    large = Blocks(LARGE * BLOCK, *reduced(small, slice(0, len(low)), np.arange(0, len(low), LARGE)))
    return Pyramid(values, kinds, large, small, positive)


def reduced(level: Blocks, blocks: slice, starts: Positions) -> tuple[Floats, Floats, Flags]:
    """Extremes and flags of the segments of some blocks that begin at `starts`."""
    low, high = np.minimum.reduceat(level.low[blocks], starts), np.maximum.reduceat(level.high[blocks], starts)
    return low, high, np.bitwise_or.reduceat(level.flags[blocks], starts)


def _unchanged(known: Pyramid, values: Floats, kinds: NDArray[np.uint8]) -> int:
    """How many of the first rows are what they were, bit by bit."""
    rows = min(len(known), len(values))
    bits = [np.ascontiguousarray(each).view(np.int64) for each in (known.values[:rows], values[:rows])]
    differs = (bits[0] != bits[1]) | (known.kinds[:rows] != kinds[:rows])
    return int(differs.argmax()) if differs.any() else rows
