"""What lies in the midst of the last values of a series: at every place of it, or only where it is asked for.

At place k of [n + 1] stands what the first k values of a series say. All of them are finite.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from functools import reduce
from math import ceil, floor

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from spikeview.cancelling import checkpoint
from spikeview.run import Floats

Positions = NDArray[np.int64]

TREND = 17
HALF, MOST = 0.5, 0.75
# How many rows back, which share of the distances lies below, and what that is times in a normal variable's deviation:
# more than half of the distances can be the same where a signal has few values.
SHORT, LONG = 33, 201
SPREADS = ((SHORT, HALF, 0.6744897501960817), (LONG, HALF, 0.6744897501960817), (LONG, MOST, 1.1503493803760079))

STRIDE = 64
PIECE = 16_384
# Where so many in a stretch are asked for, all of it is cheaper than each by itself.
DENSE = 1 / 32
AT_ONCE = 1024
FEW = 4_096  # of so many, windows are sorted out in the time that the import of a filter takes


def trend(values: Floats, width: int = TREND) -> Floats:
    """[n + 1]: the median of the last `width` values, of fewer at the start; NaN at 0.

    `width` is a power of 2 and 1: 5, 9, 17, 33.
    """
    found = np.empty(len(values) + 1)
    found[:width] = _start(values, width, HALF)[: len(found)]
    for first in range(0, len(values) - width + 1, PIECE):
        checkpoint()
        piece = values[first : first + PIECE + width - 1]
        found[first + width : first + len(piece) + 1] = _medians(piece, width)
    return found


def trend_without(known: Floats, values: Floats, gone: Positions, width: int = TREND) -> Floats:
    """The trend of `values`, which are those of the trend `known` without some: `gone` are their places, rising."""
    after = np.unique((gone - np.arange(len(gone)))[:, None] + np.arange(width - 1))
    after = after[after < len(values)]
    if (after[:1] < width).any() or len(after) > len(values) // width:
        return trend(values, width)
    found = np.delete(known, gone + 1)
    windows = sliding_window_view(values, width) if len(after) else values[:0]
    for first in range(0, len(after), PIECE):
        some = after[first : first + PIECE]
        found[some + 1] = np.sort(windows[some - width + 1], axis=1)[:, width // 2]
    return found


def spread(distances: Floats, places: Positions) -> Floats:
    """[places]: the largest of SPREADS at these places; NaN at 0."""
    begins = np.append(True, places[1:] != places[:-1])[: len(places)]
    if 2 * np.count_nonzero(begins) < len(places):  # no healthy row between many of them
        each: Floats = spread(distances, places[begins])[np.cumsum(begins) - 1]
        return each
    found = np.empty(len(places))
    early = places < LONG
    if early.any():
        found[early] = _all_spreads(distances[:LONG])[places[early]]
    late = np.flatnonzero(~early)
    stretch = places[late] // PIECE
    for number in np.unique(stretch).tolist():
        checkpoint()
        own = late[stretch == number] if len(late) > 1 and stretch[0] != stretch[-1] else late
        found[own] = _some_spreads(distances, places[own], number)
    return found


def least_spread(distances: Floats) -> Floats:
    """[(n + 1) / STRIDE, up]: what the spread is not below at the places k with k // STRIDE = i.

    In a window that is moved by d values an order statistic is not below the one d ranks under it before. So one sorted
    window in the midst of STRIDE places bounds all of them.
    """
    found = np.zeros(len(distances) // STRIDE + 1)
    first = -(-LONG // STRIDE)
    ends = (np.arange(first, len(found)) * STRIDE + STRIDE // 2).clip(max=len(distances))
    whole = ends[(ends % STRIDE == STRIDE // 2)]
    for begin in range(0, len(whole), AT_ONCE):
        checkpoint()
        some = whole[begin : begin + AT_ONCE]
        windows = np.sort(sliding_window_view(distances, LONG)[some - LONG], axis=1)
        bounds = [windows[:, int(share * LONG) - STRIDE // 2] / normal for width, share, normal in SPREADS[1:]]
        found[some // STRIDE] = np.maximum(*bounds)
    return found


def _some_spreads(distances: Floats, places: Positions, number: int) -> Floats:
    """Those at some places of one stretch."""
    if len(places) > DENSE * PIECE:
        begin = number * PIECE - LONG
        around = distances[max(0, begin) : (number + 1) * PIECE]
        return _all_spreads(around)[places - max(0, begin)]
    found = np.empty(len(places))
    for first in range(0, len(places), AT_ONCE):
        windows = sliding_window_view(distances, LONG)[places[first : first + AT_ONCE] - LONG]
        by_width = {width: np.sort(windows[:, LONG - width :], axis=1) for width in (SHORT, LONG)}
        each = [by_width[width][:, int(share * width)] / normal for width, share, normal in SPREADS]
        found[first : first + AT_ONCE] = np.fmax.reduce(each)
    return found


def _all_spreads(distances: Floats) -> Floats:
    """[n + 1]: the spread at every place."""
    spreads: Floats = np.fmax.reduce([_all(distances, width, share) / normal for width, share, normal in SPREADS])
    return spreads


def _all(values: Floats, width: int, share: float) -> Floats:
    """[n + 1]: the value that `share` of the last `width` lie below."""
    found = np.empty(len(values) + 1)
    found[:width] = _start(values, width, share)[: len(found)]
    at = int(share * width)
    if width <= len(values) <= FEW:
        found[width:] = np.partition(sliding_window_view(values, width), at, axis=1)[:, at]
    elif len(values) > FEW:
        # imported here: it takes a third of a second, which a window on a short run would spend before its first paint
        from scipy.ndimage import rank_filter

        found[width:] = rank_filter(values, at, size=width, origin=width // 2)[width - 1 :]
    return found


def _start(values: Floats, width: int, share: float) -> Floats:
    """[width]: the same while there are fewer values than `width`; NaN at 0 and beyond the values."""
    found = np.full(width, np.nan)
    seen: list[float] = []
    for place, value in enumerate(values[: width - 1].tolist(), start=1):
        insort(seen, value)
        at = share * (place - 1)
        found[place] = (seen[floor(at)] + seen[ceil(at)]) / 2
    return found


def _medians(values: Floats, width: int) -> Floats:
    """[n - width + 1]: the median of each window of `width` values.

    Neighbouring windows share what is sorted of them: of 17, of 2, 4 and 8 values, and two of 8 leave two for
    the middle of 16, which the 17th lies above, below or between. A rank filter takes three times as long.
    """
    halves: list[Floats] = [values]
    while (by := len(halves)) < width // 2:
        halves = _merged([each[:-by] for each in halves], [each[by:] for each in halves])
    pairs = [(each[: -len(halves)], other[len(halves) :]) for each, other in zip(halves, halves[::-1], strict=True)]
    low: Floats = reduce(np.maximum, [np.minimum(*pair) for pair in pairs])
    high: Floats = reduce(np.minimum, [np.maximum(*pair) for pair in pairs])
    last = values[width - 1 :]
    return np.maximum(low[: len(last)], np.minimum(high[: len(last)], last))


def _merged(one: Sequence[Floats], other: Sequence[Floats]) -> list[Floats]:
    """Two rising sequences as one, element by element of their arrays: Batcher's odd-even merge."""
    if len(one) == 1:
        return [np.minimum(one[0], other[0]), np.maximum(one[0], other[0])]
    even, odd = _merged(one[::2], other[::2]), _merged(one[1::2], other[1::2])
    middle = [choose(*pair) for pair in zip(odd, even[1:], strict=False) for choose in (np.minimum, np.maximum)]
    return [even[0], *middle, odd[-1]]
