"""Levels: what a signal's last healthy rows amount to, and how far that is from the best it was before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from spikeview.analysis.track import Track
from spikeview.analysis.trailing import trend
from spikeview.run import Floats

LEVEL = 33
FIRST = 17
DRIFTED, BACK, BEGAN = 3.0, 1.5, 1.0
SAMPLED, AT_ONCE = 8, 16_384
NEARLY = 0.8
# No level is made of values before these, nor the sample of levels that the next one belongs to.
LAST = LEVEL + SAMPLED

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Levels:
    """What there is to know of the levels before a row, since the data changed last, to go on from there.

    Of how many healthy rows they were, the `last` values of these, the best level, and the spread at it; that is None
    where only a sample of the levels was looked at. `drifted` says whether they had drifted, and were back.
    """

    count: int
    last: Floats
    best: float
    spread: float | None
    drifted: bool = False


NO_LEVELS = Levels(0, np.zeros(0), np.inf, np.nan)


@dataclass(frozen=True)
class Stretch:
    """The healthy `rows` between two changes of the data, and what is known of those before them.

    `sampled` says whether a sample of the levels is looked at before all of them.
    """

    track: Track
    side: int
    begin: int
    end: int
    rows: Positions
    before: Levels
    sampled: bool

    @property
    def count(self) -> int:
        return self.before.count + len(self.rows)

    @cached_property
    def far(self) -> Floats | None:
        """[rows]: the distance of the level from the best one before; None where it is nowhere DRIFTED."""
        if self.count <= FIRST or not self.may_drift:
            return None
        return self.distance if (self.distance > DRIFTED).any() else None

    @cached_property
    def distance(self) -> Floats:
        """[rows]: of the level from the best one before, in MADs of either place."""
        level, best, spread = self._levels
        distance: Floats = (level - best) / np.fmax(self.track.spread[self.rows], spread)
        return distance

    @cached_property
    def may_drift(self) -> bool:
        """Whether some of the levels stand nearly as far from a lower one before as a drift does.

        Levels of all rows and their spreads are dear, and a sample of most runs shows without them that there is none.
        """
        if not self.sampled:
            return True
        ends, level, lowest = self._sample
        away, rows = level - lowest, self.rows[ends]
        far = np.flatnonzero(away > NEARLY * DRIFTED * self.track.least[rows])
        return bool((away[far] > NEARLY * DRIFTED * self.track.spread[rows[far]]).any())

    def levels(self, settling: Sequence[int]) -> Mapping[int, Levels]:
        """What is known of the levels before each of these rows that lies here, and tells enough."""
        known = {row: self._known_before(row) for row in settling if self.begin <= row < self.end}
        return {row: levels for row, levels in known.items() if levels is not None}

    def _known_before(self, row: int) -> Levels | None:
        """None where it takes later rows to tell what the levels before were, or whether they had drifted."""
        here = int(np.searchsorted(self.rows, row))
        count, last = self.before.count + here, self._values[: len(self.before.last) + here][-LAST:].copy()
        if here == 0 or count < FIRST or (self.far is not None and here <= self._last_drifted):
            return self.before if here == 0 else None
        if self.sampled and not self.may_drift:
            ends, _, lowest = self._sample
            sampled = int(np.searchsorted(ends, here))
            return Levels(count, last, float(lowest[sampled - 1]) if sampled else self.before.best, None)
        _, best, spread = self._levels
        drifted = self.before.drifted or self.far is not None
        return Levels(count, last, float(best[here - 1]), float(spread[here - 1]), drifted)

    @cached_property
    def _last_drifted(self) -> int:
        """The last index at which a level had drifted and was not back."""
        return -1 if self.far is None else max(last for _, last in drifts(self.far))

    @cached_property
    def _values(self) -> Floats:
        """The last ones before, and those of the rows."""
        return np.concatenate([self.before.last, self.side * self.track.values[self.rows]])

    @cached_property
    def _levels(self) -> tuple[Floats, Floats, Floats]:
        """[rows]: the level, the best up to there, and the spread at the best."""
        level = trend(self._values, LEVEL)[1 + len(self.before.last) :]
        if not self.before.count:
            level[:FIRST] = level[FIRST - 1]
        best = np.minimum.accumulate(np.append(self.before.best, level))[1:]
        at_best = np.maximum.accumulate(np.where(level <= best, np.arange(len(level)), -1))
        spread, known = self.track.spread[self.rows], np.nan if self.before.spread is None else self.before.spread
        return level, best, np.where(at_best >= 0, spread[at_best], known)

    @cached_property
    def _sample(self) -> tuple[Positions, Floats, Floats]:
        """Of every SAMPLED-th level where it ends among the rows, what it is, and the lowest up to there."""
        count, gone = self.before.count, self.before.count - len(self.before.last)
        first = -(-max(count - LEVEL + 1, 0) // SAMPLED) * SAMPLED
        windows = sliding_window_view(self._values, LEVEL)[first - gone :: SAMPLED]
        parts = [windows[begin : begin + AT_ONCE] for begin in range(0, len(windows), AT_ONCE)]
        middles = [np.partition(part, LEVEL // 2, axis=1)[:, LEVEL // 2] for part in parts]
        level = np.concatenate([np.zeros(0), *middles])
        ends = first + LEVEL - 1 - count + SAMPLED * np.arange(len(level))
        return ends, level, np.minimum.accumulate(np.append(self.before.best, level))[1:]


def drifts(far: Floats) -> Iterator[tuple[int, int]]:
    """First and last index of each drift: it began shortly before it was BEGAN off, and ends where it is BACK.

    A median is half a LEVEL behind. Half of that is taken back: what led a drift should stand before it.
    """
    end = 0
    for place in np.flatnonzero(far > DRIFTED).tolist():
        if place >= end:
            calm = np.flatnonzero(far[end:place] <= BEGAN)
            first = max(end, end + int(calm[-1]) - LEVEL // 4) if len(calm) else end
            back = np.flatnonzero(far[place:] <= BACK)
            end = place + int(back[0]) if len(back) else len(far)
            yield first, end - 1
