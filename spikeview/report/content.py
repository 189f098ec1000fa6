"""Everything that a report says, as one plain dict: the same for HTML, Markdown and JSON."""

from __future__ import annotations

from typing import Any

from spikeview import __version__
from spikeview.format import plural
from spikeview.report.episode import episode
from spikeview.report.headline import no_incident
from spikeview.report.whole import whole_run
from spikeview.rules.diagnosis import Diagnosis
from spikeview.rules.finding import Outcome

CONTENT_VERSION = 1


class ReportError(Exception):
    """A report that cannot be made; the message is one line: what, why, and what to do."""


def content(diagnosis: Diagnosis, incident: int | None = None) -> dict[str, Any]:
    """The report on one incident, counted from 1, or on all of them.

    Every value is a str, int, float, bool, None, list or dict; non-finite numbers are the strings `nan`, `inf`
    and `-inf`. Raises ReportError for an incident that the run does not have.
    """
    total = len(diagnosis.incidents)
    if incident is not None and not 1 <= incident <= total:
        has = (
            "has no incident"
            if total == 0
            else "has 1 incident"
            if total == 1
            else f"has {total} incidents, 1 to {total}"
        )
        raise ReportError(
            f"There is no incident {incident}: {diagnosis.run.name} {has}. Leave the number out for the whole run."
        )
    chosen = range(1, total + 1) if incident is None else [incident]
    episodes = [episode(diagnosis.incidents[number - 1], number) for number in chosen]
    run = diagnosis.run
    return {
        "schema": "spikeview.report",
        "schema_version": CONTENT_VERSION,
        "spikeview_version": __version__,
        "title": f"Incident {incident} of {total} in {run.name}"
        if incident
        else f"{run.name}: {plural(total, 'incident') if total else 'no incident'}",
        "headline": episodes[0]["headline"] if len(episodes) == 1 else _summary(diagnosis),
        "incidents_in_run": total,
        "incidents": episodes,
        "checks": _checks(diagnosis),
        "run": whole_run(run),
    }


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
        }
        for check in diagnosis.checks
    ]
    return {outcome.value: [check for check in found if check["outcome"] == outcome] for outcome in Outcome}
