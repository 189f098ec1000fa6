"""Jumps: a learning rate far over any before, and parameters that lost their gradient. Each is news by itself."""

from __future__ import annotations

import numpy as np

from recorder.schema import Mask
from spikeview.analysis.rates import Rates
from spikeview.run import Run

# A warm-up by hand often goes up tenfold: that is no news.
STEEP = 10 * (1 + 1e-6)
SETTLED = 17
LONGEST = 201
LASTS = 5


def steep_rates(run: Run, rates: Rates) -> Mask:
    """[rows]: a learning rate more than ten times that of the steps before, and over any that the run ever had.

    A schedule that restarts goes back to a rate that it has had, and a warm-up grows by less from its first steps on.
    """
    steep, jumps = np.zeros(len(run), dtype=np.bool_), rates.jumps[rates.jumps >= SETTLED]
    if not len(jumps):
        return steep
    highest = np.maximum.accumulate(rates.values)
    for jump in jumps.tolist():
        now, recent = rates.values[jump], rates.values[jump - SETTLED : jump].max()
        steep[rates.places[jump]] = now > STEEP * recent and now > highest[jump - 1]
    return steep


def lost_gradients(run: Run) -> Mask:
    """[rows]: where parameters that had gradients have none any more.

    Their count was one and the same before, on up to LONGEST rows, and is larger for LASTS rows or to the end of the
    run: where an expert or a branch is used on some rows only, it is not.
    """
    return run.once("lost gradients", lambda: _lost_gradients(run))


def _lost_gradients(run: Run) -> Mask:
    lost = np.zeros(len(run), dtype=np.bool_)
    rows = np.flatnonzero(run.recorded("grad_none_params"))
    counts = run.values("grad_none_params")[rows]
    changes = np.flatnonzero(np.diff(counts)) + 1
    still = np.diff(changes, prepend=0)
    still = (still >= SETTLED) & (still >= np.minimum(changes, LONGEST))
    for at in changes[still].tolist():
        lost[rows[at]] = counts[at : at + LASTS].min() > counts[at - 1]
    return lost
