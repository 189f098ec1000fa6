"""Which rows leave a signal's baseline, with the rows that are bad never in the baseline that says so."""

from __future__ import annotations

import numpy as np

from recorder.schema import Mask
from spikeview.analysis.baseline import Track, follow
from spikeview.analysis.signals import Signal
from spikeview.run import Floats

PASSES = 4
BAND = 3.0
RECOVERED = 5


def outliers(values: Floats, feeds: Mask, signal: Signal, light: Mask) -> tuple[Mask, Track]:
    """Which rows are out, and the track they were judged by.

    `values` are [rows] on the signal's scale; `feeds` says which rows may feed the baseline at all; `light` where
    the signal has no say. A pass flags rows, takes the episode that each of them begins out of the baseline, and
    judges again, until nothing changes or after PASSES.
    """
    judged = np.isfinite(values)
    healthy = feeds & judged
    for _ in range(PASSES):
        track = follow(values, healthy, signal.floor)
        out = _streaks(_beyond(track, signal) & ~light, judged, signal.streak)
        fewer = healthy & ~_episodes(track, out, judged, signal.side)
        if np.array_equal(fewer, healthy):
            break
        healthy = fewer
    track = follow(values, healthy, signal.floor)
    return _streaks(_beyond(track, signal) & ~light, judged, signal.streak), track


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


def _episodes(track: Track, out: Mask, judged: Mask, side: int) -> Mask:
    """The rows from each onset until the signal is back, measured by the baseline it left."""
    bad = np.zeros(len(out), dtype=np.bool_)
    end = 0
    for onset in np.flatnonzero(out):
        if onset >= end:
            end = _recovery(track, int(onset), judged, side)
            bad[onset:end] = True
    return bad


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
