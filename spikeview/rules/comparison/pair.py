"""Two runs, matched on the clock of executed steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spikeview.analysis.clocks import perhaps_executed
from spikeview.rules.comparison.changes import Change, changes
from spikeview.rules.comparison.measures import MEASURES
from spikeview.rules.comparison.trace import Trace, by_batch, length
from spikeview.rules.diagnosis import Diagnosed, Diagnosis
from spikeview.rules.wording import row_of

POINTS = (0.1, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Beside:
    """A quantity of both runs, None where it was not recorded or does not exist."""

    baseline: float | None
    run: float | None

    @property
    def ratio(self) -> float | None:
        """How many times the baseline's the run's is; None where that means nothing."""
        if self.baseline is None or self.run is None or self.baseline <= 0 or self.run < 0:
            return None
        return self.run / self.baseline


@dataclass(frozen=True)
class Measured(Beside):
    """One line of the comparison."""

    id: str
    title: str
    unit: str


@dataclass(frozen=True)
class Point(Beside):
    """The losses of both runs after so many executed steps."""

    steps: int


@dataclass(frozen=True)
class Aftermath:
    """How many rows an incident lasted, and how it went on: `transient`, `persistent` or `diverged`."""

    rows: int
    persistence: str


@dataclass(frozen=True)
class Outlier:
    """What became of a batch that began an incident in the baseline, and what in the run, which has it too.

    `run` is None where the run took it without an incident. `row` is the baseline's.
    """

    batch: str
    row: int
    baseline: Aftermath
    run: Aftermath | None


@dataclass(frozen=True)
class Comparison:
    """Everything that is compared of two runs; `horizon` is the number of executed steps that both have."""

    baseline: Trace
    run: Trace
    measures: tuple[Measured, ...]
    trajectory: tuple[Point, ...]
    outliers: tuple[Outlier, ...]
    changes: tuple[Change, ...]

    @property
    def horizon(self) -> int:
        """How many executed steps of both runs are compared."""
        return self.run.horizon

    def __getitem__(self, id: str) -> Measured:
        return next(each for each in self.measures if each.id == id)


def compare(baseline: Diagnosis, run: Diagnosis) -> Comparison:
    """The two runs over as many executed steps as both have, from the start of each."""
    rows = [view.views[0].run for view in (baseline, run)]
    steps = [np.flatnonzero(each.values("executed").astype(np.bool_) | perhaps_executed(each)) for each in rows]
    horizon = min(map(len, steps))
    one, other = (Trace(*parts, horizon) for parts in zip((baseline, run), rows, steps, strict=True))
    measures = tuple(Measured(of(one), of(other), id, title, unit) for id, title, unit, of in MEASURES)
    ends = sorted({max(1, round(share * horizon)) for share in POINTS}) if horizon else []
    trajectory = tuple(Point(one.loss(end), other.loss(end), end) for end in ends)
    return Comparison(one, other, measures, trajectory, tuple(_outliers(one, other)), changes(rows[0], rows[1]))


def _outliers(baseline: Trace, run: Trace) -> Iterator[Outlier]:
    """The batches at the onset of the baseline's incidents in loss or gradient that the run has too."""
    own = {run.run.text("batch_id", each.incident.first_bad.position): each for each in run.diagnosis.incidents}
    for each in baseline.diagnosis.incidents:
        place = each.incident.first_bad.position
        batch = each.view.run.text("batch_id", place)
        if batch is None or not by_batch(each) or not run.run.equals("batch_id", batch).any():
            continue
        again = own.get(batch)
        yield Outlier(batch, row_of(each.view.run, place), _after(each), None if again is None else _after(again))


def _after(diagnosed: Diagnosed) -> Aftermath:
    return Aftermath(length(diagnosed), diagnosed.incident.persistence)
