"""A diagnosis as plain JSON values, with the keys that `spikeview triage --json` promises."""

from __future__ import annotations

from typing import Any

import numpy as np

from spikeview.format import plain
from spikeview.rules.diagnosis import Diagnosed, Diagnosis
from spikeview.rules.finding import Outcome
from spikeview.rules.wording import row_of
from spikeview.run import Run


def triage(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis of one run; non-finite numbers are the strings "nan", "inf" and "-inf"."""
    run = diagnosis.run
    return {
        "run": run.path,
        "rows": len(run),
        "executed": int(np.count_nonzero(run.values("executed"))) if run.recorded("executed").all() else None,
        "judged_rows": diagnosis.judged_rows,
        "unjudged": list(diagnosis.unjudged),
        "habitual": dict(diagnosis.habitual),
        "notes": list(run.notes),
        "incidents": [_incident(each) for each in diagnosis.incidents],
        "checks": [
            {
                "id": check.id,
                "title": check.title,
                "verdict": check.outcome.value,
                "evidence": check.evidence,
                "rows": list(check.rows),
            }
            for check in diagnosis.checks
        ],
    }


def found_something(diagnosis: Diagnosis) -> bool:
    """Whether there is an incident or a failed check."""
    return bool(diagnosis.incidents) or any(check.outcome is Outcome.FAILED for check in diagnosis.checks)


def _incident(diagnosed: Diagnosed) -> dict[str, Any]:
    incident, run = diagnosed.incident, diagnosed.view.run
    first = incident.first_bad
    return {
        "first_bad": {
            "row": row_of(run, first.position),
            "step": _step(run, first.position),
            "rank": run.rank,
            "optimizer": diagnosed.view.optimizer,
            "signal": first.signal,
            "value": plain(first.value),
            "range": None,
            "reason": first.reason,
            "deviation": plain(first.deviation),
            "batch_id": run.text("batch_id", first.position),
        },
        "transition": None if diagnosed.transition is None else row_of(run, diagnosed.transition),
        "transition_unknown": diagnosed.transition_unknown,
        "last_healthy_row": None if incident.last_healthy is None else row_of(run, incident.last_healthy),
        "last_row": row_of(run, incident.last),
        "severity": incident.severity,
        "persistence": incident.persistence,
        "lead": [{"signal": lead.signal, "row": lead.row, "rows_ahead": lead.rows_ahead} for lead in incident.lead],
        "extent": [
            {
                "signal": signal,
                "first_row": row_of(run, extent.first),
                "rows": extent.rows,
                "worst": plain(extent.worst.value),
                "deviation": plain(extent.worst.deviation),
            }
            for signal, extent in incident.extent.items()
        ],
        "findings": [finding.plain() for finding in diagnosed.findings],
    }


def _step(run: Run, position: int) -> int | None:
    return int(run.values("step")[position]) if run.recorded("step")[position] else None
