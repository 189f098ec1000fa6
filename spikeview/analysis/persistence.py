"""How an incident goes on: back in its baseline, held out of it, or never back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recorder.schema import Mask
from spikeview.analysis.observed import Observed
from spikeview.analysis.signals import SIGNALS
from spikeview.run import Floats

WINDOW = 16
SUSTAINED = 3.0
CRITICAL = 10.0
LEAST = 3
HALF = 0.5

_SIDE = {signal.column: signal.side for signal in SIGNALS}

TRANSIENT, PERSISTENT, DIVERGED = "transient", "persistent", "diverged"


def persistence(observed: Sequence[Observed], first: int, last: int) -> str:
    """How an episode of one signal went on, from its first bad row: `observed` holds the signal for every reason.

    Diverged: out of the band up to the last row of the run, for LEAST rows or more, or with a non-finite loss there.
    Persistent: in some WINDOW of rows
    the smallest distance is over SUSTAINED and the largest over CRITICAL, the two conditions of the K2-V2 technical
    report (section 3.5.2).
    """
    length = len(observed[0].mask)
    rows = slice(first, min(last + 1 + WINDOW, length))
    far = _distance(observed, rows)
    far = far[~np.isnan(far)]
    inside = np.flatnonzero(far <= SUSTAINED)
    starts, ends = np.append(0, inside + 1), np.append(inside, len(far))
    tail = far[starts[-1] :]
    # A loss that is not a number any more on the last row of a run did not come back, however short the tail.
    lost = observed[0].signal == "loss" and len(tail) > 0 and np.isinf(tail[-1])
    if rows.stop == length and (len(tail) >= LEAST or lost):
        return DIVERGED
    long = ends - starts >= WINDOW
    if any(far[start:end].max() > CRITICAL for start, end in zip(starts[long], ends[long], strict=True)):
        return PERSISTENT
    return TRANSIENT


def _bad(each: Observed, rows: slice) -> Mask:
    """Rows that are bad by themselves; of a jump, all up to where the value is back, by half at least."""
    bad = each.mask[rows]
    if each.reason != "jump" or not bad.any():
        return bad
    first = int(np.argmax(bad))
    values = each.values[rows]
    stays: Mask = np.logical_and.accumulate(values[first:] > HALF * values[first])
    return np.append(bad[:first], bad[first:] | stays)


def _distance(observed: Sequence[Observed], rows: slice) -> Floats:
    """In MADs towards the bad side, NaN where there is none; a row that is bad for another reason is infinitely far."""
    measured = [_SIDE.get(each.signal, 1) * each.deviation[rows] for each in observed if each.deviation is not None]
    far = np.fmax.reduce(measured) if measured else np.zeros(rows.stop - rows.start)
    for each in observed:
        if each.deviation is None:
            far = np.where(_bad(each, rows), np.inf, far)
    return far
