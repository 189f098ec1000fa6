"""Envelope: the true minimum and maximum of the rows behind every column of pixels, at any zoom.

A single level of blocks over the rows: a view reads whole blocks, and rows only where an edge cuts one, so
its cost follows the number of pixel columns and not the length of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from spikeview.run import Floats, Kind

BLOCK: Final = 64
CHUNK: Final = 4096 * BLOCK

Flags = NDArray[np.uint8]
Positions = NDArray[np.int64]

DRAWN: Final = np.uint8(1 << Kind.FINITE)
NAN: Final = np.uint8(1 << Kind.NAN)
POS_INF: Final = np.uint8(1 << Kind.POS_INF)
NEG_INF: Final = np.uint8(1 << Kind.NEG_INF)
NOT_APPLICABLE: Final = np.uint8(1 << Kind.NOT_APPLICABLE)
NOT_RECORDED: Final = np.uint8(1 << Kind.NOT_RECORDED)
NOT_POSITIVE: Final = np.uint8(1 << 6)


@dataclass(frozen=True, eq=False)
class Pyramid:
    """A series of rows with the extremes and the flags of every block of 64 of them.

    `values` is [rows] in the signal's units, `kinds` [rows] says what each cell is (`run.Kind`). `low` and `high`
    are [blocks], over the cells that can be drawn, +inf and -inf where a block has none; `flags` [blocks] holds one
    bit for every kind of cell in the block. `positive` is for a log axis: zero and below are flagged
    NOT_POSITIVE instead of drawn.
    """

    values: Floats
    kinds: NDArray[np.uint8]
    low: Floats
    high: Floats
    flags: Flags
    positive: bool

    def __len__(self) -> int:
        return len(self.values)


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
        flags[(kinds == Kind.FINITE) & (values <= 0)] = NOT_POSITIVE
    return flags


def build(values: Floats, kinds: NDArray[np.uint8], positive: bool = False) -> Pyramid:
    """The pyramid over a series; the last, shorter block is kept. Nothing of the rows is copied."""
    blocks = -(-len(values) // BLOCK)
    low, high, flags = np.empty(blocks), np.empty(blocks), np.empty(blocks, dtype=np.uint8)
    for first in range(0, len(values), CHUNK):
        rows = slice(first, first + CHUNK)
        into = slice(first // BLOCK, first // BLOCK + CHUNK // BLOCK)
        starts = np.arange(0, len(values[rows]), BLOCK)
        low[into], high[into], flags[into] = _extremes(values[rows], kinds[rows], positive, starts)
    return Pyramid(values, kinds, low, high, flags, positive)


def edges(first: float, last: float, width: int, rows: int) -> Positions:
    """[width + 1] positions: column i holds the rows edges[i] .. edges[i + 1] - 1 of the view [first, last)."""
    cuts = np.ceil(first + (last - first) / width * np.arange(width + 1))
    inside: Positions = np.clip(cuts, 0, rows).astype(np.int64)
    return inside


def envelope(pyramid: Pyramid, first: float, last: float, width: int) -> Envelope:
    """The extremes and flags of every column of pixels of the view [first, last), in positions of rows.

    Raises ValueError for a view or a width that is not positive.
    """
    if width < 1 or not last > first:
        raise ValueError(f"a view needs a positive width and extent, not {width} columns over [{first}, {last})")
    cuts = edges(first, last, width, len(pyramid))
    wide = last - first >= 2 * BLOCK * width
    return _from_blocks(pyramid, cuts) if wide else _from_rows(pyramid, cuts)


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


def _from_rows(pyramid: Pyramid, cuts: Positions) -> Envelope:
    columns = _empty(len(cuts) - 1)
    held = np.flatnonzero(np.diff(cuts) > 0)
    if len(held) == 0:
        return columns
    rows = slice(cuts[0], cuts[-1])
    found = _extremes(pyramid.values[rows], pyramid.kinds[rows], pyramid.positive, cuts[held] - cuts[0])
    columns.low[held], columns.high[held], columns.flags[held] = found
    return columns


def _from_blocks(pyramid: Pyramid, cuts: Positions) -> Envelope:
    """Whole blocks from the pyramid, and of the blocks that an edge cuts each part to its side."""
    width = len(cuts) - 1
    before, after = _cut_blocks(pyramid, cuts)
    low, high, flags = _whole_blocks(pyramid, -(-cuts[:-1] // BLOCK), cuts[1:] // BLOCK)
    apart = cuts[:-1] // BLOCK != cuts[1:] // BLOCK
    for part, sides in ((after, slice(0, width)), (before, slice(1, width + 1))):
        np.minimum(low, part.low[sides], out=low, where=apart)
        np.maximum(high, part.high[sides], out=high, where=apart)
        np.bitwise_or(flags, part.flags[sides], out=flags, where=apart)
    columns = Envelope(low, high, flags)
    # only the first and the last column can lie inside one block: the run may begin or end within them
    for column in np.flatnonzero(~apart & (np.diff(cuts) > 0)):
        alone = _from_rows(pyramid, cuts[column : column + 2])
        columns.low[column], columns.high[column], columns.flags[column] = alone.low[0], alone.high[0], alone.flags[0]
    return columns


def _whole_blocks(pyramid: Pyramid, begin: Positions, end: Positions) -> tuple[Floats, Floats, Flags]:
    """Extremes and flags of the blocks begin .. end - 1 of every column; of none where end <= begin."""
    pairs = np.stack([begin, np.maximum(begin, end)], axis=1).ravel()
    # reduceat takes no index past the end, and its last segment ends there by itself
    inner = pairs[: int(np.searchsorted(pairs, len(pyramid.low)))]
    held = np.arange(len(inner[::2]))[(end > begin)[: len(inner[::2])]]
    columns = _empty(len(begin))
    if len(held):
        columns.low[held] = np.minimum.reduceat(pyramid.low, inner)[::2][held]
        columns.high[held] = np.maximum.reduceat(pyramid.high, inner)[::2][held]
        columns.flags[held] = np.bitwise_or.reduceat(pyramid.flags, inner)[::2][held]
    return columns.low, columns.high, columns.flags


def _cut_blocks(pyramid: Pyramid, cuts: Positions) -> tuple[Envelope, Envelope]:
    """The block at every cut, as two: its rows before the cut, and those from the cut on."""
    block, inside = cuts // BLOCK, cuts % BLOCK
    values, kinds = _rows_of_blocks(pyramid.values, block), _rows_of_blocks(pyramid.kinds, block)
    starts = np.stack([np.arange(len(cuts)) * BLOCK, np.arange(len(cuts)) * BLOCK + inside], axis=1).ravel()
    low, high, flags = _extremes(values, kinds, pyramid.positive, starts)
    before, after = (Envelope(low[side::2], high[side::2], flags[side::2]) for side in (0, 1))
    nothing = inside == 0
    before.low[nothing], before.high[nothing], before.flags[nothing] = np.inf, -np.inf, 0
    return before, after


def _rows_of_blocks(rows: NDArray[Any], block: Positions) -> NDArray[Any]:
    """The rows of each of the blocks, end to end.

    The last block is filled up with its last row: no column that is cut there reads beyond the run.
    """
    whole = len(rows) // BLOCK
    body, last = rows[: whole * BLOCK].reshape(whole, BLOCK), block >= whole
    found = np.empty((len(block), BLOCK), dtype=rows.dtype)
    found[~last] = body[block[~last]]
    found[last] = rows[np.minimum(np.arange(whole * BLOCK, (whole + 1) * BLOCK), len(rows) - 1)]
    return found.ravel()
