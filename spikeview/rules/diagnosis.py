"""From a run to its diagnosis: baselines, incidents, the triage table of each, the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from spikeview.analysis.baseline import Baseline
from spikeview.analysis.episodes import incidents, kept
from spikeview.analysis.incident import Incident, Observation
from spikeview.analysis.observations import Observations, observe
from spikeview.analysis.observed import Observed
from spikeview.analysis.signals import SIGNALS
from spikeview.cancelling import checkpoint
from spikeview.rules.checks import checked
from spikeview.rules.context import Context
from spikeview.rules.finding import CheckResult, Finding
from spikeview.rules.seen import Seen
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
class Elsewhere:
    """What the ranks beside the first one have of an incident.

    `rows` are, of every rank that saw it, its first and last row there. `lowest` and `highest` are those of the first
    bad signal on the other ranks, at the moment it was first bad, where they are finite and its own; `nonfinite` says
    on how many they are not.
    """

    rows: Mapping[int, tuple[int, int]]
    lowest: float | None = None
    highest: float | None = None
    nonfinite: int = 0


@dataclass(frozen=True)
class Diagnosed:
    """One incident with its triage table and the transition to inspect.

    `transition` is the position of the transition before the first bad observation: for the loss and the
    gradient the last executed one before it, for the update the row itself; None at the start of a run, and where
    rows before the first bad one do not say whether they executed: then `transition_unknown`. `findings` are in order
    of relevance: every face of a diagnosis shows them so. `ranks` are those that saw it, where several were read, and
    `elsewhere` what they saw.
    """

    incident: Incident
    view: View
    transition: int | None
    findings: Sequence[Finding]
    transition_unknown: bool = False
    ranks: tuple[int, ...] = ()
    elsewhere: Elsewhere | None = None


@dataclass(frozen=True)
class Grounds:
    """What was observed on the rows of an optimizer, and the incidents that were made of what `begins` one."""

    observations: Observations
    begins: Sequence[Observed]
    incidents: Sequence[Incident]


@dataclass(frozen=True)
class Diagnosis:
    """Everything that is said about a run. `incidents` are in order of row, `checks` in the order of CHECKS.

    `ranks` are those that were read, where they are several; `grounds` is by optimizer what a diagnosis of a later
    reading can go on from.
    """

    run: Run
    views: tuple[View, ...]
    incidents: tuple[Diagnosed, ...]
    checks: tuple[CheckResult, ...]
    ranks: tuple[int, ...] = ()
    grounds: Mapping[str, Grounds] = field(default_factory=dict, repr=False)

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
def diagnose(run: Run, ranks: Mapping[int, Run] | None = None, before: Diagnosis | None = None) -> Diagnosis:
    """Everything that can be said about a run from its columns; `ranks` are the runs of all its ranks, if several.

    What a diagnosis of an earlier reading, `before`, said of rows that are as they were then is not worked out anew.
    """
    views: list[View] = []
    found: list[Diagnosed] = []
    grounds: dict[str, Grounds] = {}
    for name in run.optimizers or [UNNAMED]:
        rows = run.of(name)
        known = None if before is None else before.grounds.get(name)
        seen = observe(rows, None if known is None else known.observations)
        view = View(name, rows, seen.baselines)
        told = any(_same_loss(rows, other.run) for other in views)
        grounds[name] = _grounds(
            seen, [each for each in seen.observed if not (told and each.phase == "forward")], known
        )
        watched = watch(rows, seen.baselines, seen.observed)
        found += [_judge(view, watched, incident) for incident in grounds[name].incidents]
        views.append(view)
    found.sort(key=lambda each: _row(each))
    checks = checked(Seen(run, ranks=ranks or {}), [(view.optimizer, _seen(view, found)) for view in views])
    return Diagnosis(run, tuple(views), tuple(found), checks, grounds=grounds)


def _grounds(seen: Observations, begins: Sequence[Observed], before: Grounds | None) -> Grounds:
    """With the incidents that were known and are as they were, and those that begin after them."""
    known: Sequence[Incident] = ()
    since = 0
    if before is not None and seen.since:
        known, since = kept(before.incidents, before.begins, begins, seen.since)
    return Grounds(seen, begins, (*known, *incidents(seen.run, begins, since)))


def _seen(view: View, found: Sequence[Diagnosed]) -> Seen:
    """What the checks may look at of one optimizer."""
    return Seen(view.run, [each.incident for each in found if each.view is view], view.baselines)


def _judged(view: View) -> int:
    """Rows of which a signal has a distance from its baseline."""
    judged = [baseline.judged for baseline in view.baselines.values()]
    return int(np.count_nonzero(np.logical_or.reduce(judged))) if judged else 0


def _judges(views: Sequence[View], column: str) -> bool:
    return any(column in view.baselines and view.baselines[column].judged.any() for view in views)


def _judge(view: View, watched: Watch, incident: Incident) -> Diagnosed:
    checkpoint()
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
