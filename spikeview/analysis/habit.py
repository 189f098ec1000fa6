"""Habits: rows that are far out, and yet no farther than the signal goes again and again."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from recorder.schema import Mask
from spikeview.analysis.lazy import Positions
from spikeview.analysis.recovery import Episodes
from spikeview.analysis.track import Track
from spikeview.run import Floats

HABIT = 3
HABIT_ROWS = 400
BEYOND_HABIT = 1.5
AT_ONCE = 1024


def usual_rows(strayed: Episodes, finite: Mask) -> Mask:
    """[rows]: those by which a habit is told: of an episode the one it begins with."""
    if not len(strayed.onsets):
        return finite
    usual: Mask = finite & ~strayed.bad
    usual[strayed.onsets[strayed.onsets >= 0]] = True
    return usual


def habitual_among(track: Track, beyond: Positions, usual: Mask, side: int, before: Floats) -> Mask:
    """[beyond]: rows beyond the band that go no farther than the signal does by habit.

    A heavy tail, a mixture of data sets or the start of every epoch takes a signal out of any band made of medians, and
    again and again. So a row is no news where HABIT of the HABIT_ROWS `usual` ones before it went as far, to a factor
    of BEYOND_HABIT. An episode counts once, by the row it begins with: that it lasts makes it no habit.
    """
    if not len(beyond):
        return np.zeros(0, dtype=np.bool_)
    strays = side * (track.values - track.center)
    places = np.flatnonzero(usual & ~np.isnan(strays))
    known = np.concatenate([before, strays[places]]) if len(before) else strays[places]
    largest = _third_largest(known, len(before) + np.searchsorted(places, beyond))
    return strays[beyond] <= BEYOND_HABIT * largest  # NaN where there are too few


def _third_largest(values: Floats, ends: Positions) -> Floats:
    """[ends]: the HABIT-th largest of the HABIT_ROWS values before each end, NaN where there are fewer than HABIT."""
    found = np.full(len(ends), np.nan)
    for at in np.flatnonzero((ends >= HABIT) & (ends < HABIT_ROWS)).tolist():
        found[at] = np.partition(values[: ends[at]], -HABIT)[-HABIT]
    late = np.flatnonzero(ends >= HABIT_ROWS)
    for first in range(0, len(late), AT_ONCE):
        some = late[first : first + AT_ONCE]
        windows = sliding_window_view(values, HABIT_ROWS)[ends[some] - HABIT_ROWS]
        found[some] = np.partition(windows, -HABIT, axis=1)[:, -HABIT]
    return found
