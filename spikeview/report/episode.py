"""One incident as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spikeview.format import cell, label, mads, plain, plural, scalar
from spikeview.meaning import onset
from spikeview.report.checkpoints import Event, last_known_good
from spikeview.report.feeding import feed_again
from spikeview.report.headline import aftermath, headline
from spikeview.report.layers import carriers
from spikeview.report.replays import captured, replays
from spikeview.report.series import around
from spikeview.report.sparkline import sparklines
from spikeview.report.timeline import timeline
from spikeview.report.transition import DUMP, neighbours, transition
from spikeview.rules.diagnosis import Diagnosed
from spikeview.rules.finding import Verdict
from spikeview.rules.wording import row_of


def episode(diagnosed: Diagnosed, number: int, good: Sequence[Event], rows: int) -> dict[str, Any]:
    """Everything that is said about one incident; `number` counts from 1, as people are shown it.

    `good` are the checkpoints outside every incident, `rows` how many neighbours are told on either side.
    """
    incident, view = diagnosed.incident, diagnosed.view
    run, before = view.run, transition(diagnosed)
    checkpoint = last_known_good(diagnosed, good)
    findings = [finding.plain() for finding in diagnosed.findings]
    start, stop = around(diagnosed)
    return {
        "number": number,
        "headline": headline(diagnosed, before),
        "aftermath": aftermath(diagnosed),
        "captured": captured(diagnosed),
        "severity": incident.severity,
        "persistence": incident.persistence,
        "first_bad": _first_bad(diagnosed),
        "last_healthy_row": None if incident.last_healthy is None else row_of(run, incident.last_healthy),
        "last_row": row_of(run, incident.last),
        "rows": incident.last - incident.first_bad.position + 1,
        "look_first": next((found["look"] for found in findings if found["verdict"] == Verdict.MATCHED), None),
        "why_this_transition": _why(diagnosed),
        "transition": before,
        "neighbour_columns": [head for _, head in DUMP],
        "neighbours": neighbours(diagnosed, rows),
        "findings": {
            verdict.value: [found for found in findings if found["verdict"] == verdict] for verdict in Verdict
        },
        "signals": _signals(diagnosed),
        "timeline": timeline(diagnosed),
        "layers": carriers(diagnosed),
        "checkpoint": checkpoint,
        "feed_again": feed_again(diagnosed, checkpoint),
        "replays": replays(diagnosed),
        "window": {
            "first_row": row_of(run, start),
            "last_row": row_of(run, stop - 1),
            "whole_run": stop - start == len(run),
        },
        "sparklines": sparklines(run, start, stop),
    }


def listed(diagnosed: Diagnosed, number: int) -> dict[str, Any]:
    """What is said of an incident that is only listed."""
    first, run = diagnosed.incident.first_bad, diagnosed.view.run
    return {
        "number": number,
        "row": row_of(run, first.position),
        "step": cell(run, "step", first.position)["text"],
        "label": label(first.signal),
        "severity": diagnosed.incident.severity,
        "persistence": diagnosed.incident.persistence,
    }


def _first_bad(diagnosed: Diagnosed) -> dict[str, Any]:
    first, run = diagnosed.incident.first_bad, diagnosed.view.run
    at = first.position
    where = {name: cell(run, name, at) for name in ("step", "micro_step", "segment", "time_ns", "batch_id")}
    return {
        "row": row_of(run, at),
        **where,
        "range": plain(onset(run, first.signal, at)),
        "rank": run.rank,
        "ranks": list(diagnosed.ranks),
        "optimizer": diagnosed.view.optimizer,
        "signal": first.signal,
        "label": label(first.signal),
        "value": plain(first.value),
        "text": scalar(first.signal, first.value),
        "reason": first.reason,
        "deviation": None if first.deviation is None else mads(first.deviation),
    }


def _why(diagnosed: Diagnosed) -> str:
    """Which row is inspected, and why that one."""
    first, at = diagnosed.incident.first_bad, diagnosed.transition
    if at is None and diagnosed.transition_unknown:
        return "Which transition came before the first bad observation is not known: executed was not recorded."
    if at is None:
        return "No transition executed before the first bad observation: it came from the initial state or the batch."
    if at == first.position:
        return "It was seen in this row's own update, so this row's optimizer made it; the next loss feels it first."
    gap = first.position - at - 1
    between = f" The {plural(gap, 'row')} in between did not execute." if gap else ""
    name = "loss was" if first.phase == "forward" else "gradient was"
    return f"The {name} computed with the parameters that this transition left behind.{between}"


def _signals(diagnosed: Diagnosed) -> list[dict[str, Any]]:
    """When each signal first left its baseline, how often it did, and how far it went at worst."""
    run, incident = diagnosed.view.run, diagnosed.incident
    ahead = {lead.signal: lead.rows_ahead for lead in incident.lead}
    found = []
    for signal, extent in incident.extent.items():
        worst = extent.worst
        found.append(
            {
                "signal": signal,
                "label": label(signal),
                "first_row": row_of(run, extent.first),
                "first_step": cell(run, "step", extent.first)["text"],
                "rows": extent.rows,
                "reason": worst.reason,
                "worst": scalar(signal, worst.value),
                "deviation": None if worst.deviation is None else mads(worst.deviation),
                "rows_ahead": ahead.get(signal),
            }
        )
    return found
