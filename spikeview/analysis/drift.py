"""Drift: a level that rises so slowly that every row is ordinary beside the rows before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.habit import BEYOND_HABIT
from spikeview.analysis.levels import AT_ONCE, LEVEL, NO_LEVELS, Levels, Stretch, drifts
from spikeview.analysis.outliers import Judged
from spikeview.run import Floats

# Of so many levels a sample is looked at first.
SAMPLED_FROM = LEVEL + AT_ONCE

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Drift:
    """[rows]: where a level has drifted, from where it began until it is back, and by how many MADs.

    `deviation` is NaN in stretches of the data without a drift, and None where there is none at all. `levels` has, of
    the rows that were asked for, those from which on a drift can be told without the rows before.
    """

    rows: Mask
    deviation: Floats | None
    levels: Mapping[int, Levels]


def drift(judged: Judged, side: int, starts: Positions, settling: Sequence[int] = ()) -> Drift:
    """Where the level of a signal stands far from the best one it had.

    The level is the median of the last LEVEL healthy rows, and the best the lowest before it, or the highest where low
    is bad. By chance it strays by half a MAD: DRIFTED tell as much as a single row at several times that. At `starts`
    the data change and a new level begins. A drift that goes no farther than BEYOND_HABIT times one that came back is
    no news: a loss that falls within each epoch does so.
    """
    rows, deviation = np.zeros(len(judged.healthy), dtype=np.bool_), None
    levels: dict[int, Levels] = {}
    for stretch in _stretches(judged, side, starts):
        levels |= stretch.levels(settling)
        if (far := stretch.far) is not None:
            own = stretch.rows
            deviation = np.full(len(rows), np.nan) if deviation is None else deviation
            deviation[own] = far
            for first, last in _news(far):
                rows[own[first] : own[last] + 1] = True
    return Drift(rows, deviation, levels)


def calm(judged: Judged, side: int, starts: Positions, before: Levels, settling: Sequence[int] = ()) -> Drift | None:
    """That no level drifts on these rows, by what is known of those before them; None where that does not tell."""
    rows, deviation = np.zeros(len(judged.healthy), dtype=np.bool_), None
    levels: dict[int, Levels] = {}
    for stretch in _stretches(judged, side, starts, before):
        if stretch.may_drift and (stretch.before.spread is None or stretch.far is not None):
            return None
        if stretch.before.drifted:
            if stretch.before.count < SAMPLED_FROM <= stretch.count:
                return None
            deviation = np.full(len(rows), np.nan)
            deviation[stretch.rows] = stretch.distance
        levels |= stretch.levels(settling)
    return Drift(rows, deviation, levels)


def _stretches(judged: Judged, side: int, starts: Positions, before: Levels = NO_LEVELS) -> Iterator[Stretch]:
    """The rows from one change of the data to the next, of which the first go on from what is known."""
    edges = np.concatenate([[0], starts, [len(judged.healthy)]])
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        rows = begin + np.flatnonzero(judged.healthy[begin:end])
        sampled = before.spread is None if before.count else len(rows) >= SAMPLED_FROM
        yield Stretch(judged.track, side, begin, end, rows, before, sampled)
        before = NO_LEVELS


def _news(far: Floats) -> Iterator[tuple[int, int]]:
    """First and last index of each drift that goes farther than those before it."""
    farthest = 0.0
    for first, last in drifts(far):
        most = float(far[first : last + 1].max())
        if most > BEYOND_HABIT * farthest:
            yield first, last
        farthest = max(farthest, most)
