"""Track: a signal's trend and its spread at every row, from the healthy rows before it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.lazy import Column, LazyColumn, Positions
from spikeview.analysis.trailing import STRIDE, least_spread, spread
from spikeview.run import Floats

FIRST = 4
CAUTION = 8.0

Counts = NDArray[np.int32]
# A centre and a spread.
Band: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Settled:
    """What there is to know of the rows before one to follow a signal from there on.

    How many of them were healthy, the last values that were `kept` of those, and the last `strays`, by which it is told
    what the signal does by habit. Where it was out there, `strayed` is the band it had left, and `held` is where that
    was no habit.
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


def _healthy_before(rows: Positions, counts: Counts | None) -> Positions:
    """How many healthy rows stand before each of these rows."""
    return rows if counts is None else np.where(rows > 0, counts[rows - 1], 0).astype(np.int64)
