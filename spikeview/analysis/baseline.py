"""Baseline: what a signal has been doing on recent executed, healthy rows."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.signals import Scale
from spikeview.run import Floats

TREND = 17
SPREADS = (33, 201)
FIRST = 4
CAUTION = 8.0
MAD = 1.482602218505602  # a MAD times this is the standard deviation of a normal variable; one "MAD" here is that


@dataclass(frozen=True)
class Baseline:
    """One signal's expected value at every row, made only from the healthy rows before it.

    All arrays are [rows]; `center`, `lower` and `upper` are in the signal's own units, where `lower` and
    `upper` stand one MAD below and above; `deviation` is the row's signed distance from the centre in MADs.
    NaN where there is no baseline yet, and in `deviation` where the row has no finite value.
    """

    center: Floats
    lower: Floats
    upper: Floats
    deviation: Floats


@dataclass(frozen=True)
class Track:
    """A signal on the scale it is judged in: its values, its local trend and its spread, each [rows]."""

    values: Floats
    center: Floats
    spread: Floats

    @property
    def deviation(self) -> Floats:
        return (self.values - self.center) / self.spread


def follow(values: Floats, healthy: Mask, floor: float) -> Track:
    """The trend and spread at each row, from the healthy rows before it.

    The trend is the median of the last TREND of them: a longer one would hold the fall of a falling loss. The
    spread is the median distance from that trend, over a short stretch and a long one, whichever is larger; at
    least `floor`, and larger while there are few rows to judge by. NaN until there are FIRST healthy rows.
    """
    kept = values[healthy]
    trend = _trailing_median(kept, TREND)
    strays = np.abs(kept - trend[:-1])[1:]
    spread = np.fmax(*(_trailing_median(strays, width) for width in SPREADS)) * MAD
    strays_before = np.maximum(np.arange(len(kept) + 1) - 1, 0)
    widened = np.maximum(spread, floor) * (1 + CAUTION / np.maximum(np.arange(len(spread)), 1))
    before: NDArray[np.int64] = np.cumsum(healthy) - healthy
    center = np.where(before >= FIRST, trend[before], np.nan)
    return Track(values, center, np.where(before >= FIRST, widened[strays_before[before]], np.nan))


def baseline(track: Track, scale: Scale) -> Baseline:
    """A track in the signal's own units."""
    return Baseline(
        center=scale.undo(track.center),
        lower=scale.undo(track.center - track.spread),
        upper=scale.undo(track.center + track.spread),
        deviation=track.deviation,
    )


def _trailing_median(values: Floats, width: int) -> Floats:
    """[n + 1]: at k the median of the last `width` of the first k values, NaN at 0."""
    count = len(values)
    medians = np.full(count + 1, np.nan)
    if count >= width:
        # imported here: it takes a third of a second, which the window would spend before its first paint
        from scipy.ndimage import median_filter

        medians[width:] = median_filter(values, size=width, origin=width // 2)[width - 1 :]
    seen: list[float] = []
    for k, value in enumerate(values[: width - 1].tolist(), start=1):
        insort(seen, value)
        medians[k] = (seen[(k - 1) // 2] + seen[k // 2]) / 2
    return medians
