"""Baseline: what a signal has been doing on recent executed, healthy rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.lazy import Column, LazyColumn, Positions, padded
from spikeview.analysis.signals import Scale
from spikeview.analysis.trailing import LONG, STRIDE, TREND, least_spread, spread, trend, trend_without
from spikeview.run import Floats

FIRST = 4
CAUTION = 8.0

NOWHERE: Mask = np.zeros(0, dtype=np.bool_)
# The trend and the spread of a row are made of no values before these.
KEPT = LONG + TREND + 1

Counts = NDArray[np.int32]
# A centre and a spread.
Band: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Baseline:
    """One signal's expected value at every row, made only from the healthy rows before it.

    All are [rows]; `center`, `lower` and `upper` are in the signal's own units, where `lower` and
    `upper` stand one MAD below and above; `deviation` is the row's signed distance from the centre in MADs.
    NaN where there is no baseline yet, and in `deviation` where the row has no finite value. `habitual` says where the
    row is too far out, but no farther than the signal often is; `judged` where it has a distance from its baseline, and
    `far` where that is over the signal's threshold.
    """

    center: Column
    lower: Column
    upper: Column
    deviation: Column
    habitual: Mask = field(default_factory=lambda: NOWHERE)
    judged: Mask = field(default_factory=lambda: NOWHERE)
    far: Mask = field(default_factory=lambda: NOWHERE)

    def part(self, rows: slice) -> Baseline:
        """The baseline of a few rows."""
        center, lower, upper, deviation = (each[rows] for each in (self.center, self.lower, self.upper, self.deviation))
        return Baseline(center, lower, upper, deviation, self.habitual[rows], self.judged[rows], self.far[rows])

    def padded(self, rows: int) -> Baseline:
        """The baseline with nothing known of the rows beyond it."""
        more = np.zeros(rows - len(self.habitual), dtype=np.bool_)
        center, lower, upper, deviation = (
            padded(each, rows) for each in (self.center, self.lower, self.upper, self.deviation)
        )
        habitual, judged, far = (np.append(each, more) for each in (self.habitual, self.judged, self.far))
        return Baseline(center, lower, upper, deviation, habitual, judged, far)


@dataclass(frozen=True)
class Settled:
    """What there is to know of the rows before one to follow a signal from there on.

    How many of them were healthy, the last values that were `kept` of those, KEPT at most, and the last `strays`, by
    which it is told what the signal does by habit. Where it was out there, `strayed` is the band it had left, and
    `held` is where that was no habit.
    """

    count: int
    kept: Floats
    strays: Floats
    strayed: Band | None = None
    held: Band | None = None


NOTHING = Settled(0, np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class Track:
    """A signal on the scale it is judged in: its values, its local trend and its spread, each [rows].

    `caution` is the factor in the spread that stands for the few rows it was made from, `least` what the spread is not
    below, that factor aside. `distances` are those of the healthy values but the first from their trends, `counts` how
    many rows up to each are healthy, None where all are.
    """

    values: Floats
    center: Floats
    spread: Column
    caution: Column
    least: Column
    distances: Floats = field(default_factory=lambda: np.zeros(0))
    counts: Counts | None = None

    @classmethod
    def of(
        cls,
        values: Floats,
        center: Floats,
        distances: Floats,
        counts: Counts | None,
        least: float,
        before: Settled = NOTHING,
    ) -> Track:
        """With the spread at each row from the healthy rows before it.

        The spread is the median distance from the trend, over a short stretch and a long one, or its upper quartile
        over the long one, whichever is larger, as the standard deviation of a normal variable with the same: that is
        one "MAD" here. It is at least `least`, and larger while there are few rows to judge by. NaN until there are
        FIRST healthy rows. `distances` begin with those of what was `kept` before.
        """
        bounds = cache(lambda: least_spread(distances))
        gone = before.count - len(before.kept)

        def places(rows: Positions) -> Positions:
            return np.maximum(_healthy_before(rows, counts) + len(before.kept) - 1, 0)

        def caution(rows: Positions) -> Floats:
            cautious: Floats = 1 + CAUTION / np.maximum(places(rows) + gone, 1)
            return cautious

        def widened(rows: Positions) -> Floats:
            wide = np.maximum(spread(distances, places(rows)), least) * caution(rows)
            return np.where(_healthy_before(rows, counts) + before.count >= FIRST, wide, np.nan)

        def bound(rows: Positions) -> Floats:
            return np.maximum(bounds()[places(rows) // STRIDE], least)

        count = len(values)
        spreads, cautions = LazyColumn(count, widened, dear=True), LazyColumn(count, caution)
        return cls(values, center, spreads, cautions, LazyColumn(count, bound), distances, counts)

    @property
    def deviation(self) -> LazyColumn:
        return LazyColumn(len(self.values), lambda rows: (self.values[rows] - self.center[rows]) / self.spread[rows])

    @cached_property
    def judged(self) -> Mask:
        """[rows]: whether there is a distance from the trend."""
        with np.errstate(over="ignore", invalid="ignore"):
            judged: Mask = np.isfinite(self.values - self.center)
        return judged


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


def _healthy_before(rows: Positions, counts: Counts | None) -> Positions:
    """How many healthy rows stand before each of these rows."""
    return rows if counts is None else np.where(rows > 0, counts[rows - 1], 0).astype(np.int64)


def baseline(track: Track, scale: Scale, habitual: Mask, judged: Mask, far: Mask) -> Baseline:
    """A track in the signal's own units."""

    def undone(side: int) -> LazyColumn:
        def work_out(rows: Positions) -> Floats:
            scaled = track.center[rows] + side * track.spread[rows] if side else track.center[rows]
            return scale.undo(scaled, rows)

        return LazyColumn(len(track.values), work_out)

    return Baseline(undone(0), undone(-1), undone(1), track.deviation, habitual, judged, far)
