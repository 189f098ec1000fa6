"""A diagnosis as plain JSON values, with the keys that `spikeview triage --json` promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spikeview.analysis.clocks import executed_steps
from spikeview.analysis.incident import Observation
from spikeview.format import plain
from spikeview.meaning import onset
from spikeview.rules.checklist import checklist
from spikeview.rules.checks import CRITICAL
from spikeview.rules.diagnosis import Diagnosed, Diagnosis, Elsewhere
from spikeview.rules.finding import Outcome
from spikeview.rules.habits import habits
from spikeview.rules.replayed import captures_within
from spikeview.rules.wording import row_of
from spikeview.run import Run


def triage(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis of one run; non-finite numbers are the strings "nan", "inf" and "-inf"."""
    run = diagnosis.run
    return {
        "run": run.path,
        **_ranks(diagnosis.ranks),
        "rows": len(run),
        "executed": executed_steps(run) if run.recorded("executed").all() else None,
        "judged_rows": diagnosis.judged_rows,
        "unjudged": list(diagnosis.unjudged),
        "habitual": dict(diagnosis.habitual),
        **_habits(diagnosis),
        "notes": list(run.notes),
        "incidents": [_incident(each) for each in diagnosis.incidents],
        "checks": [check.plain() for check in diagnosis.checks],
        "checklist": [item.plain() for item in checklist(diagnosis)],
    }


def worst(diagnosis: Diagnosis) -> str | None:
    """The severity of the worst incident or failed check, `critical` or `warning`; None where there is neither."""
    found = {each.incident.severity for each in diagnosis.incidents}
    found |= {check.severity for check in diagnosis.checks if check.outcome is Outcome.FAILED}
    return CRITICAL if CRITICAL in found else next(iter(found), None)


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
            "range": _range(run, first),
            "reason": first.reason,
            "deviation": plain(first.deviation),
            "batch_id": run.text("batch_id", first.position),
        },
        **_ranks(diagnosed.ranks),
        **_elsewhere(diagnosed.elsewhere),
        **_captures(diagnosed),
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


def _habits(diagnosis: Diagnosis) -> dict[str, Any]:
    """Only where there are any."""
    return {"habits": [each.plain() for each in found]} if (found := habits(diagnosis)) else {}


def _ranks(ranks: Sequence[int]) -> dict[str, Any]:
    """Only where several were read."""
    return {"ranks": list(ranks)} if ranks else {}


def _elsewhere(found: Elsewhere | None) -> dict[str, Any]:
    """Only where several ranks were read."""
    if found is None:
        return {}
    rows = [{"rank": rank, "first_row": first, "last_row": last} for rank, (first, last) in found.rows.items()]
    others = {"lowest": plain(found.lowest), "highest": plain(found.highest), "nonfinite": found.nonfinite}
    return {"seen": rows, "other_ranks": others}


def _captures(diagnosed: Diagnosed) -> dict[str, Any]:
    """Only where there are any; that of the first bad row leads."""
    found = captures_within(diagnosed.view.run, diagnosed.incident, diagnosed.transition)
    told = [
        {"row": each.row, "command": each.command, "replay": None if each.replay is None else each.replay.summary}
        for each in found
    ]
    return {"captures": told} if told else {}


def _step(run: Run, position: int) -> int | None:
    return int(run.values("step")[position]) if run.recorded("step")[position] else None


def _range(run: Run, first: Observation) -> list[int] | None:
    """First and last step of the onset, where a log only bounds it."""
    steps = onset(run, first.signal, first.position)
    return None if steps is None else list(steps)
