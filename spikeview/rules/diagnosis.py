"""From a run to its diagnosis: baselines, incidents, the triage table of each, the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spikeview.analysis.baseline import Baseline
from spikeview.analysis.episodes import incidents
from spikeview.analysis.incident import Incident, Observation
from spikeview.analysis.observations import Observed, observe
from spikeview.analysis.signals import SIGNALS
from spikeview.rules.checks import checked
from spikeview.rules.context import Context
from spikeview.rules.finding import CheckResult, Finding
from spikeview.rules.table import Findings
from spikeview.rules.watch import Watch, watch
from spikeview.run import Run

UNNAMED = "optimizer"


@dataclass(frozen=True)
class View:
    """The rows of one optimizer with a baseline for each signal, by column name."""

    optimizer: str
    run: Run
    baselines: Mapping[str, Baseline]


@dataclass(frozen=True)
class Diagnosed:
    """One incident with its triage table and the transition to inspect.

    `transition` is the position of the transition before the first bad observation: for the loss and the
    gradient the last executed one before it, for the update the row itself; None at the start of a run, and where
    rows before the first bad one do not say whether they executed: then `transition_unknown`. `findings` are in order
    of relevance: every face of a diagnosis shows them so.
    """

    incident: Incident
    view: View
    transition: int | None
    findings: Sequence[Finding]
    transition_unknown: bool = False


@dataclass(frozen=True)
class Diagnosis:
    """Everything that is said about a run. `incidents` are in order of row, `checks` in the order of CHECKS."""

    run: Run
    views: tuple[View, ...]
    incidents: tuple[Diagnosed, ...]
    checks: tuple[CheckResult, ...]

    @cached_property
    def judged_rows(self) -> int:
        """How many rows had a baseline for at least one watched signal: no other is known to be ordinary."""
        return sum(_judged(view) for view in self.views)

    @cached_property
    def unjudged(self) -> tuple[str, ...]:
        """The watched columns of which no row had a baseline."""
        return tuple(signal.column for signal in SIGNALS if not _judges(self.views, signal.column))

    @cached_property
    def habitual(self) -> Mapping[str, int]:
        """On how many rows a watched signal was too far out to be ordinary, but no farther than it often is.

        Such rows begin no incident.
        """
        counts: dict[str, int] = {}
        for view in self.views:
            for column, baseline in view.baselines.items():
                counts[column] = counts.get(column, 0) + int(np.count_nonzero(baseline.habitual))
        return {column: count for column, count in counts.items() if count}


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # values may be as large as a float can hold
def diagnose(run: Run) -> Diagnosis:
    """Everything that can be said about a run from its columns."""
    views: list[View] = []
    found: list[Diagnosed] = []
    for name in run.optimizers or [UNNAMED]:
        rows = run.of(name)
        baselines, observed = observe(rows)
        view = View(name, rows, baselines)
        told = any(_same_loss(rows, other.run) for other in views)
        found += _diagnosed(view, observed, [each for each in observed if not (told and each.phase == "forward")])
        views.append(view)
    found.sort(key=lambda each: _row(each))
    checks = checked(run, [(view.optimizer, view.run) for view in views])
    return Diagnosis(run, tuple(views), tuple(found), checks)


def _judged(view: View) -> int:
    """Rows of which a signal has a distance from its baseline."""
    deviations = [np.isfinite(baseline.deviation) for baseline in view.baselines.values()]
    return int(np.count_nonzero(np.logical_or.reduce(deviations))) if deviations else 0


def _judges(views: Sequence[View], column: str) -> bool:
    return any(column in view.baselines and np.isfinite(view.baselines[column].deviation).any() for view in views)


def _diagnosed(view: View, observed: Sequence[Observed], begins: Sequence[Observed]) -> list[Diagnosed]:
    """The incidents made of the observations `begins`; their rules are shown all that was observed."""
    watched = watch(view.run, view.baselines, observed)
    return [_judge(view, watched, incident) for incident in incidents(view.run, begins)]


def _judge(view: View, watched: Watch, incident: Incident) -> Diagnosed:
    first = incident.first_bad
    before = watched.executed_before(first.position)
    accused = before if points_back(first) else first.position
    unknown = accused is None and len(watched.perhaps_before(first.position)) > 0
    return Diagnosed(incident, view, accused, Findings(Context(watched, incident, before, accused)), unknown)


def points_back(first: Observation) -> bool:
    """A loss or a gradient was made with the parameters that the transition before left behind."""
    return first.phase in ("forward", "backward")


def _same_loss(rows: Run, other: Run) -> bool:
    """Forward columns repeat on each optimizer of a transition: what they show is told once."""
    return len(rows) == len(other) and np.array_equal(rows.values("loss"), other.values("loss"), equal_nan=True)


def _row(diagnosed: Diagnosed) -> int:
    position = diagnosed.incident.first_bad.position
    return int(diagnosed.view.run.values("row")[position]) if "row" in diagnosed.view.run else position
