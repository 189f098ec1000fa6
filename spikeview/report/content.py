"""Everything that a report says, as one plain dict: the same for HTML, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spikeview import __version__
from spikeview.format import plural
from spikeview.report.checkpoints import untouched
from spikeview.report.episode import episode, listed
from spikeview.report.errors import ReportError
from spikeview.report.headline import no_incident
from spikeview.report.transition import NEIGHBOURS
from spikeview.report.whole import whole_run
from spikeview.rules.checklist import Section, checklist
from spikeview.rules.diagnosis import Diagnosis
from spikeview.rules.finding import Outcome

CONTENT_VERSION = 1
MOST = 100
LISTED = 200


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # values may be as large as a float can hold
def content(
    diagnosis: Diagnosis,
    incident: int | Sequence[int] | None = None,
    *,
    note: str = "",
    rows: int = NEIGHBOURS,
    most: int = MOST,
) -> dict[str, Any]:
    """The report on one incident or several, counted from 1, or on all of them.

    `note` is the reader's own word, `rows` how many neighbours of a transition are told on either side. Of all
    incidents the `most` severe are told in full, and the others listed. Every value is a str, int, float, bool, None,
    list or dict; non-finite numbers are the strings `nan`, `inf` and `-inf`. Raises ReportError for an incident that
    the run does not have.
    """
    chosen, run, good = _chosen(diagnosis, incident), diagnosis.run, untouched(diagnosis)
    full = chosen if incident is not None else severest(diagnosis, chosen, most)
    others = sorted(set(chosen).difference(full))
    episodes = [episode(diagnosis.incidents[number - 1], number, good, rows) for number in full]
    return {
        "schema": "spikeview.report",
        "schema_version": CONTENT_VERSION,
        "spikeview_version": __version__,
        "title": _title(diagnosis, chosen, whole=incident is None),
        "headline": episodes[0]["headline"] if len(chosen) == 1 else _summary(diagnosis),
        "note": note,
        "incidents_in_run": len(diagnosis.incidents),
        "incidents": episodes,
        "others": [listed(diagnosis.incidents[number - 1], number) for number in others[:LISTED]],
        "others_left_out": max(0, len(others) - LISTED),
        "checks": _checks(diagnosis),
        "checklist": _checklist(diagnosis),
        "run": whole_run(run),
    }


def severest(diagnosis: Diagnosis, numbers: Sequence[int], most: int) -> list[int]:
    """So many of the incidents, the most severe ones and of those the first, in order of their numbers."""
    return sorted(
        sorted(numbers, key=lambda number: diagnosis.incidents[number - 1].incident.severity != "critical")[:most]
    )


def _chosen(diagnosis: Diagnosis, incident: int | Sequence[int] | None) -> list[int]:
    """The numbers of the incidents that are asked for, in order."""
    total = len(diagnosis.incidents)
    if incident is None:
        return list(range(1, total + 1))
    asked = sorted({incident} if isinstance(incident, int) else set(incident))
    absent = next((number for number in asked if not 1 <= number <= total), None)
    if absent is None:
        return asked
    has = "no incident" if not total else "1 incident" if total == 1 else f"{total} incidents, 1 to {total}"
    raise ReportError(
        f"There is no incident {absent}: {diagnosis.run.name} has {has}. Leave the number out for the whole run."
    )


def _title(diagnosis: Diagnosis, chosen: Sequence[int], whole: bool) -> str:
    name, total = diagnosis.run.name, len(diagnosis.incidents)
    if whole:
        return f"{name}: {plural(total, 'incident') if total else 'no incident'}"
    if len(chosen) == 1:
        return f"Incident {chosen[0]} of {total} in {name}"
    return f"Incidents {', '.join(map(str, chosen[:-1]))} and {chosen[-1]} of {total} in {name}"


def _summary(diagnosis: Diagnosis) -> str:
    rows, total = plural(len(diagnosis.run), "row"), len(diagnosis.incidents)
    failed = sum(check.outcome is Outcome.FAILED for check in diagnosis.checks)
    checks = f"{plural(failed, 'check')} failed" if failed else "no check failed"
    if total == 0:
        return f"{no_incident(diagnosis)}; {checks}."
    return f"{plural(total, 'incident')} in {rows}; {checks}."


def _checks(diagnosis: Diagnosis) -> dict[str, list[dict[str, Any]]]:
    """The checks by their outcome, failed ones first."""
    found = [
        {
            "id": check.id,
            "title": check.title,
            "outcome": check.outcome.value,
            "evidence": check.evidence,
            "rows": list(check.rows),
            "missing": list(check.missing),
            "next": check.next,
            "severity": check.severity,
        }
        for check in diagnosis.checks
    ]
    return {outcome.value: [check for check in found if check["outcome"] == outcome] for outcome in Outcome}


def _checklist(diagnosis: Diagnosis) -> dict[str, list[dict[str, Any]]]:
    """The common mistakes and what should hold before a launch, in the order of the list."""
    items = [item.plain() for item in checklist(diagnosis)]
    return {section.value: [item for item in items if item["section"] == section] for section in Section}
