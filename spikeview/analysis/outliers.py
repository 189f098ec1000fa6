"""Which rows leave a signal's baseline, with the rows that are bad never in the baseline that says so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recorder.schema import Mask
from spikeview.analysis.baseline import Track, follow
from spikeview.analysis.signals import Signal
from spikeview.run import Floats

PASSES = 4
BAND = 3.0
RECOVERED = 5
HABIT = 3
HABIT_ROWS = 400
BEYOND_HABIT = 1.5


@dataclass(frozen=True)
class Judged:
    """Masks over the rows by the track they were judged by: which are `out`, and which only by habit."""

    track: Track
    out: Mask
    habitual: Mask


def outliers(values: Floats, feeds: Mask, signal: Signal, light: Mask) -> Judged:
    """Which rows leave a signal's baseline.

    `values` are [rows] on the signal's scale; `feeds` says which rows may feed the baseline at all; `light` where
    the signal has no say. A pass flags rows, takes the episode that each of them begins out of the baseline, and
    judges again, until nothing changes or after PASSES.
    """
    finite = np.isfinite(values)
    healthy = feeds & finite
    for _ in range(PASSES):
        judged = _judge(follow(values, healthy, signal.floor), finite, signal, light)
        fewer = healthy & ~_episodes(judged.track, judged.out, finite, signal.side)[0]
        if np.array_equal(fewer, healthy):
            return judged
        healthy = fewer
    return _judge(follow(values, healthy, signal.floor), finite, signal, light)


def _judge(track: Track, finite: Mask, signal: Signal, light: Mask) -> Judged:
    beyond = _streaks(_beyond(track, signal) & ~light, finite, signal.streak)
    episodes, onsets = _episodes(track, beyond, finite, signal.side)
    habitual = _habitual(track, beyond, finite & (~episodes | onsets), signal.side)
    return Judged(track, beyond & ~habitual, habitual)


def _habitual(track: Track, beyond: Mask, counts: Mask, side: int) -> Mask:
    """Rows beyond the band that go no farther than the signal does by habit.

    A heavy tail, a mixture of data sets or the start of every epoch takes a signal out of any band made of medians, and
    again and again. So a row is no news where HABIT of the HABIT_ROWS before it went as far, to a factor of
    BEYOND_HABIT. An episode counts once, by the row it begins with (`counts`): that it lasts makes it no habit.
    """
    strays = side * (track.values - track.center)
    places = np.flatnonzero(counts & ~np.isnan(strays))
    kept = strays[places]
    found = np.zeros(len(beyond), dtype=np.bool_)
    for row in np.flatnonzero(beyond):
        end = int(np.searchsorted(places, row))
        recent = kept[max(0, end - HABIT_ROWS) : end]
        if len(recent) >= HABIT:
            found[row] = strays[row] <= BEYOND_HABIT * np.partition(recent, -HABIT)[-HABIT]
    return found


def _beyond(track: Track, signal: Signal) -> Mask:
    with np.errstate(invalid="ignore"):
        out = signal.side * track.deviation > signal.threshold
        if signal.bound is not None:
            out &= signal.side * track.values > signal.side * signal.bound
    return out


def _streaks(out: Mask, judged: Mask, least: int) -> Mask:
    """Only those that stand in a run of at least `least`, counted over the judged rows."""
    if least <= 1:
        return out
    kept = out[judged]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], kept, [False]]).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    long = np.zeros(len(kept) + 1, dtype=np.int64)
    chosen = ends - starts >= least
    long[starts[chosen]] += 1
    long[ends[chosen]] -= 1
    result = np.zeros(len(out), dtype=np.bool_)
    result[judged] = np.cumsum(long[:-1]) > 0
    return result


def _episodes(track: Track, out: Mask, judged: Mask, side: int) -> tuple[Mask, Mask]:
    """The rows from each onset until the signal is back, measured by the baseline it left, and the onsets."""
    bad, onsets = np.zeros(len(out), dtype=np.bool_), np.zeros(len(out), dtype=np.bool_)
    end = 0
    for onset in np.flatnonzero(out).tolist():
        if onset >= end:
            end = _recovery(track, onset, judged, side)
            bad[onset:end] = onsets[onset] = True
    return bad, onsets


def _recovery(track: Track, onset: int, judged: Mask, side: int) -> int:
    """The first of RECOVERED judged rows in a row inside the band; the length of the run where there is none."""
    center, spread = track.center[onset], track.spread[onset]
    length, count = 4 * RECOVERED, len(judged)
    while True:
        places = onset + np.flatnonzero(judged[onset : onset + length])
        inside = side * (track.values[places] - center) / spread <= BAND
        runs = (
            np.convolve(inside, np.ones(RECOVERED, dtype=np.int64), mode="valid")
            if len(inside) >= RECOVERED
            else inside[:0]
        )
        found = np.flatnonzero(runs == RECOVERED)
        if len(found):
            return int(places[found[0]])
        if onset + length >= count:
            return count
        length *= 2
