"""From a run to its diagnosis: baselines, incidents, the triage table of each, the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spikeview.analysis.baseline import Baseline
from spikeview.analysis.incident import Incident, Observation, incidents
from spikeview.analysis.observations import Observed, observe
from spikeview.rules.checks import checked
from spikeview.rules.context import Context, Watch, watch
from spikeview.rules.finding import CheckResult, Finding
from spikeview.rules.relevance import by_relevance
from spikeview.rules.table import findings
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
    gradient the last executed one before it, for the update the row itself; None at the start of a run. `findings`
    are in order of relevance: every face of a diagnosis shows them so.
    """

    incident: Incident
    view: View
    transition: int | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Diagnosis:
    """Everything that is said about a run. `incidents` are in order of row, `checks` in the order of CHECKS."""

    run: Run
    views: tuple[View, ...]
    incidents: tuple[Diagnosed, ...]
    checks: tuple[CheckResult, ...]


def diagnose(run: Run) -> Diagnosis:
    """Everything that can be said about a run from its columns."""
    views: list[View] = []
    found: list[Diagnosed] = []
    for name in run.optimizers or [UNNAMED]:
        rows = run.of(name)
        baselines, observed = observe(rows)
        view = View(name, rows, baselines)
        if any(_same_loss(rows, other.run) for other in views):
            observed = tuple(each for each in observed if each.phase != "forward")
        found += _diagnosed(view, observed)
        views.append(view)
    found.sort(key=lambda each: _row(each))
    return Diagnosis(run, tuple(views), tuple(found), checked([(view.optimizer, view.run) for view in views]))


def _diagnosed(view: View, observed: Sequence[Observed]) -> list[Diagnosed]:
    watched = watch(view.run, view.baselines, observed)
    contexts = [_context(watched, incident) for incident in incidents(view.run, observed)]
    return [
        Diagnosed(each.incident, view, each.accused, by_relevance(findings(each), each.incident.first_bad))
        for each in contexts
    ]


def _context(watched: Watch, incident: Incident) -> Context:
    first = incident.first_bad
    before = watched.last_executed_before(first.position)
    return Context(watched, incident, before, before if points_back(first) else first.position)


def points_back(first: Observation) -> bool:
    """A loss or a gradient was made with the parameters that the transition before left behind."""
    return first.phase in ("forward", "backward")


def _same_loss(rows: Run, other: Run) -> bool:
    """Forward columns repeat on each optimizer of a transition: what they show is told once."""
    return len(rows) == len(other) and np.array_equal(rows.values("loss"), other.values("loss"), equal_nan=True)


def _row(diagnosed: Diagnosed) -> int:
    position = diagnosed.incident.first_bad.position
    return int(diagnosed.view.run.values("row")[position]) if "row" in diagnosed.view.run else position
