"""Which rows are past a signal's threshold, on its bad side."""

from __future__ import annotations

import numpy as np

from recorder.schema import Mask
from spikeview.analysis.lazy import Positions
from spikeview.analysis.signals import Signal
from spikeview.analysis.track import Track
from spikeview.run import Floats

ROUNDING = 1e-9


def beyond(track: Track, signal: Signal, leeway: Floats) -> tuple[Positions, Positions, Positions]:
    """Rows that are far, those of which the next ones tell whether they are out, and those that are, light ones aside.

    Where a baseline is made from few rows it takes much to be sure of an episode. That it began with the rows that lead
    into it needs no more than to be sure of a row where there are many.
    """
    rows = _candidates(track, signal, leeway)
    distance = signal.side * track.deviation[rows] / leeway[rows]
    out, leading = distance > signal.threshold, distance * track.caution[rows] > signal.threshold
    far = rows[out]
    if signal.bound is not None:
        past = signal.side * track.values[rows] > signal.side * signal.bound
        out, leading = out & past, leading & past
    opens = rows[leading & ~out] if signal.streak == 1 else rows[out | leading]
    return far, opens, rows[out | leading & _leads(rows, out, leading)]


def _candidates(track: Track, signal: Signal, leeway: Floats) -> Positions:
    """The rows that can be past the threshold: the spread is worked out for no other."""
    away = signal.side * (track.values - track.center)
    least = signal.threshold * (1 - ROUNDING)
    rows = np.flatnonzero(away > least * leeway.min(initial=1.0) * signal.floor)
    return rows[away[rows] > least * leeway[rows] * track.least[rows]]


def _leads(rows: Positions, out: Mask, leading: Mask) -> Mask:
    """Those of the rows from which a row that is out is reached through nothing but leading ones."""
    if not out.any():
        return out
    at = np.arange(len(rows))
    goes_on = np.append((np.diff(rows) == 1) & (leading | out)[1:], False)
    next_out = np.minimum.accumulate(np.where(out, at, len(rows))[::-1])[::-1]
    next_end = np.minimum.accumulate(np.where(goes_on, len(rows), at)[::-1])[::-1]
    reached: Mask = next_out <= next_end
    return reached


def in_streaks(out: Positions, judged: Mask, least: int) -> Positions:
    """Only those that stand in a run of at least `least`, counted over the judged rows."""
    if least <= 1 or not len(out):
        return out
    places = np.cumsum(judged)[out]
    run = np.cumsum(np.diff(places, prepend=places[0]) > 1)
    return out[np.bincount(run)[run] >= least]
