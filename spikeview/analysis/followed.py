"""Followed: the healthy rows of a signal and the trend after each, of which its track is made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recorder.schema import Mask
from spikeview.analysis.track import FIRST, NOTHING, Counts, Settled, Track
from spikeview.analysis.trailing import LONG, TREND, trend, trend_without
from spikeview.run import Floats

# The trend and the spread of a row are made of no values before these.
KEPT = LONG + TREND + 1


@dataclass(frozen=True)
class Followed:
    """What a track was made of: the `healthy` rows, and of the values there the trend after each of them.

    Before these values stand those that were `kept` of the rows before.
    """

    healthy: Mask
    kept: Floats
    trend: Floats
    before: Settled = NOTHING

    @classmethod
    def of(
        cls, values: Floats, healthy: Mask, width: int, known: Followed | None = None, before: Settled = NOTHING
    ) -> Followed:
        """Of a `known` one with more healthy rows little is made anew."""
        kept = np.concatenate([before.kept, values[healthy]]) if before.count else values[healthy]
        if known is None or known.before is not before:
            return cls(healthy, kept, trend(kept, width), before)
        gone = np.flatnonzero(~healthy[known.healthy]) + len(before.kept)
        return cls(healthy, kept, trend_without(known.trend, kept, gone, width), before)

    def track(self, values: Floats, least: float) -> Track:
        """The trend and spread at each row, from the healthy rows before it.

        The trend is the median of the last of them, of as many as the signal says: a longer one would hold the fall of
        a falling loss.
        """
        counts: Counts | None = None if self.healthy.all() else np.cumsum(self.healthy, dtype=np.int32)
        distances = np.abs(self.kept - self.trend[:-1])[1:]
        return Track.of(values, self._at_rows(counts), distances, counts, least, self.before)

    def _at_rows(self, counts: Counts | None) -> Floats:
        """[rows]: the trend of the healthy rows before each, NaN until there are FIRST."""
        lead, known = len(self.before.kept), self.trend.copy()
        known[: max(FIRST + lead - self.before.count, 0)] = np.nan
        return known[lead:-1] if counts is None else known[lead + counts - self.healthy]

    def last(self, row: int) -> tuple[int, Floats]:
        """How many rows before one are healthy, and the last of their values."""
        healthy = int(np.count_nonzero(self.healthy[:row]))
        return self.before.count + healthy, self.kept[: len(self.before.kept) + healthy][-KEPT:].copy()


def follow(values: Floats, healthy: Mask, least: float, width: int = TREND) -> Track:
    """The trend and spread of a signal at each row: `Followed.track`."""
    return Followed.of(values, healthy, width).track(values, least)
