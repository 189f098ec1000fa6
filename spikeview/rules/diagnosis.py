"""From a run to its diagnosis: baselines, incidents, the triage table of each, the checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spikeview.analysis.baseline import Baseline
from spikeview.analysis.incident import Incident
from spikeview.rules.finding import CheckResult, Finding
from spikeview.run import Run


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
    gradient the last executed one before it, for the update the row itself; None at the start of a run.
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
