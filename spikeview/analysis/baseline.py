"""Baseline: what a signal has been doing on recent executed, healthy rows."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.signals import Scale
from spikeview.run import Floats

TREND = 17
HALF, MOST = 0.5, 0.75
# How many rows back, which share of the distances lies below, and what that is times in a normal variable's deviation:
# more than half of the distances can be the same where a signal has few values.
SPREADS = ((33, HALF, 0.6744897501960817), (201, HALF, 0.6744897501960817), (201, MOST, 1.1503493803760079))
FIRST = 4
CAUTION = 8.0


@dataclass(frozen=True)
class Baseline:
    """One signal's expected value at every row, made only from the healthy rows before it.

    All arrays are [rows]; `center`, `lower` and `upper` are in the signal's own units, where `lower` and
    `upper` stand one MAD below and above; `deviation` is the row's signed distance from the centre in MADs.
    NaN where there is no baseline yet, and in `deviation` where the row has no finite value. `habitual` says where the
    row is too far out, but no farther than the signal often is.
    """

    center: Floats
    lower: Floats
    upper: Floats
    deviation: Floats
    habitual: Mask = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))


@dataclass(frozen=True)
class Track:
    """A signal on the scale it is judged in: its values, its local trend and its spread, each [rows]."""

    values: Floats
    center: Floats
    spread: Floats

    @property
    def deviation(self) -> Floats:
        return (self.values - self.center) / self.spread


def follow(values: Floats, healthy: Mask, least: float) -> Track:
    """The trend and spread at each row, from the healthy rows before it.

    The trend is the median of the last TREND of them: a longer one would hold the fall of a falling loss. The
    spread is the median distance from that trend, over a short stretch and a long one, or its upper quartile over the
    long one, whichever is larger, as the standard deviation of a normal variable with the same: that is one "MAD" here.
    It is at least `least`, and larger while there are few rows to judge by. NaN until there are FIRST healthy rows.
    """
    kept = values[healthy]
    trend = _trailing(kept, TREND, HALF)
    strays = np.abs(kept - trend[:-1])[1:]
    spread = np.fmax.reduce([_trailing(strays, width, share) / normal for width, share, normal in SPREADS])
    strays_before = np.maximum(np.arange(len(kept) + 1) - 1, 0)
    widened = np.maximum(spread, least) * (1 + CAUTION / np.maximum(np.arange(len(spread)), 1))
    before: NDArray[np.int64] = np.cumsum(healthy) - healthy
    center = np.where(before >= FIRST, trend[before], np.nan)
    return Track(values, center, np.where(before >= FIRST, widened[strays_before[before]], np.nan))


def baseline(track: Track, scale: Scale, habitual: Mask) -> Baseline:
    """A track in the signal's own units."""
    return Baseline(
        center=scale.undo(track.center),
        lower=scale.undo(track.center - track.spread),
        upper=scale.undo(track.center + track.spread),
        deviation=track.deviation,
        habitual=habitual,
    )


def _trailing(values: Floats, width: int, share: float) -> Floats:
    """[n + 1]: at k the value that `share` of the last `width` of the first k values lie below, NaN at 0."""
    count = len(values)
    found = np.full(count + 1, np.nan)
    if count >= width:
        # imported here: it takes a third of a second, which the window would spend before its first paint
        from scipy.ndimage import rank_filter

        found[width:] = rank_filter(values, int(share * width), size=width, origin=width // 2)[width - 1 :]
    seen: list[float] = []
    for k, value in enumerate(values[: width - 1].tolist(), start=1):
        insort(seen, value)
        at = share * (k - 1)
        found[k] = (seen[floor(at)] + seen[ceil(at)]) / 2
    return found
