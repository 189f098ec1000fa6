"""One of two runs that are compared, on the clock of its executed steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spikeview.cells import Kind
from spikeview.rules.diagnosis import Diagnosed, Diagnosis
from spikeview.run import Floats, Run

WINDOW = 64
SHARE = 20
FORWARD_OR_BACKWARD = ("forward", "backward")


@dataclass(frozen=True)
class Trace:
    """One run of the two: the rows of its first optimizer, and the positions of the steps that executed.

    `horizon` is how many of them are compared: as many as both runs have, from the start.
    """

    diagnosis: Diagnosis
    run: Run
    steps: NDArray[np.int64]
    horizon: int

    @property
    def compared(self) -> NDArray[np.int64]:
        """The positions of the compared steps."""
        return self.steps[: self.horizon]

    @property
    def window(self) -> int:
        """Over how many steps a loss is the median: a twentieth of what is compared, WINDOW at most."""
        return max(1, min(WINDOW, self.horizon // SHARE))

    def values(self, column: str) -> Floats:
        """The finite values of a column on the compared steps."""
        rows = self.compared[self.run.kind(column)[self.compared] == Kind.FINITE]
        values: Floats = self.run.values(column)[rows].astype(np.float64)
        return values

    def loss(self, end: int) -> float | None:
        """Median of the finite losses of the window that ends with this step, counted from 1; None without any."""
        rows = self.steps[max(0, end - self.window) : end]
        losses = self.run.values("loss")[rows[self.run.kind("loss")[rows] == Kind.FINITE]]
        return float(np.median(losses)) if len(losses) else None


def by_batch(diagnosed: Diagnosed) -> bool:
    """Whether an incident began in loss or gradient: what a batch can bring about."""
    return diagnosed.incident.first_bad.phase in FORWARD_OR_BACKWARD


def length(diagnosed: Diagnosed) -> int:
    """Rows from an incident's onset to its last one."""
    incident = diagnosed.incident
    return incident.last - incident.first_bad.position + 1
