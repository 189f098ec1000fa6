"""What two runs learned, and how far they moved, before either went critical."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spikeview.cells import Kind
from spikeview.format import number, plural
from spikeview.rules.comparison.pair import Comparison
from spikeview.rules.comparison.trace import Trace

HALF = 0.5
NOTHING = 0.05
LESS = 0.1
SHORTEST = 20
LEAST = 4


@dataclass(frozen=True)
class Learned:
    """The losses after so many steps, and the higher one at the start of both.

    `baseline` is None where either run went critical too early for that.
    """

    steps: int
    start: float
    baseline: float | None
    run: float

    def __str__(self) -> str:
        other = "" if self.baseline is None else f", the baseline's to {number(self.baseline)}"
        over = plural(self.steps, "executed step")
        return f"its loss went from {number(self.start)} to {number(self.run)}{other}, over {over}"

    @property
    def hardly(self) -> bool:
        """The run learned under half of what the baseline did; where that is not known, next to nothing."""
        if self.baseline is None:
            return self.start - self.run < NOTHING * abs(self.start)
        return self.start - self.run < HALF * (self.start - self.baseline)

    @property
    def less(self) -> bool:
        """The baseline's loss came down a tenth farther, or more."""
        return self.baseline is not None and self.run - self.baseline > LESS * abs(self.start - self.baseline)

    @property
    def more(self) -> bool:
        """The run's loss came down a tenth farther, or more."""
        return self.baseline is not None and self.baseline - self.run > LESS * abs(self.start - self.baseline)


def learning(comparison: Comparison, calm: int) -> Learned | None:
    """Over the steps before either run went critical; of the run alone over all, where those are too few."""
    enough = calm >= SHORTEST or calm == comparison.horizon
    steps = calm if enough else comparison.horizon
    traces = (comparison.baseline, comparison.run)
    starts = [trace.loss(min(trace.window, steps)) for trace in traces]
    ends = [trace.loss(steps) for trace in traces]
    if steps < LEAST or starts[1] is None or ends[1] is None or (enough and None in (starts[0], ends[0])):
        return None
    start = max(each for each in starts if each is not None) if enough else starts[1]
    return Learned(steps, start, ends[0] if enough else None, ends[1])


def before_critical(trace: Trace) -> int:
    """How many executed steps a run has before its first critical incident."""
    first = [
        each.incident.first_bad.position
        for each in trace.diagnosis.incidents
        if each.incident.severity == "critical" and each.view.run is trace.run
    ]
    return int(np.searchsorted(trace.compared, first[0])) if first else trace.horizon


def movement(comparison: Comparison, calm: int) -> float | None:
    """How large the run's updates are, in the baseline's, over the steps before either went critical."""
    sizes = []
    for trace in (comparison.baseline, comparison.run):
        rows = trace.compared[: calm or trace.horizon]
        known = rows[trace.run.kind("update_ratio")[rows] == Kind.FINITE]
        sizes.append(float(np.median(trace.run.values("update_ratio")[known])) if len(known) else np.nan)
    return sizes[1] / sizes[0] if sizes[0] > 0 and np.isfinite(sizes[1]) else None
