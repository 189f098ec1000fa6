"""Which rows of another run stand beside those of this one: at the same step, or after as many executed steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spikeview.analysis.envelope import Positions
from spikeview.run import Run
from spikeview.ui.plot.scale import Steps

Clock = Literal["step", "executed"]


@dataclass(frozen=True, eq=False)
class Alignment:
    """What the clock says at every row of this run and of the other, [rows] each, never falling.

    Where a run goes back to an earlier step its clock stands still until it is past the latest one.
    """

    ours: Positions
    theirs: Positions

    def beside(self, position: int) -> int | None:
        """The other run's last row that is not later than a row of ours; None before its first and after its last."""
        clock = self.ours[position]
        if not self.theirs[0] <= clock <= self.theirs[-1]:
            return None
        return int(np.searchsorted(self.theirs, clock, side="right")) - 1

    def positions(self, theirs: Positions) -> NDArray[np.float64]:
        """Where rows of theirs stand among ours, between two rows where none is as late; NaN before and after all."""
        clock = self.theirs[theirs]
        found = np.interp(clock, self.ours, np.arange(len(self.ours)))
        outside = (clock < self.ours[0]) | (clock > self.ours[-1])
        return np.where(outside, np.nan, found)

    def cuts(self, ours: Positions) -> Positions:
        """Cuts between rows of ours as cuts between rows of theirs."""
        inside = np.minimum(ours, len(self.ours) - 1)
        clock = self.ours[inside] + (ours > inside)
        found: Positions = np.searchsorted(self.theirs, clock)
        return found


def aligned(ours: Run, theirs: Run, clock: Clock) -> Alignment:
    """The alignment of two runs of rows by a clock."""
    return Alignment(_clock(ours, clock), _clock(theirs, clock))


def _clock(run: Run, clock: Clock) -> Positions:
    values = run.values("executed_n") if clock == "executed" and "executed_n" in run else Steps.of(run).values
    found: Positions = np.maximum.accumulate(values.astype(np.int64, copy=False))
    return found
