"""A diagnosis as a person reads it at a glance over SSH: 80 columns, colour only on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.text import Text

from recorder.store.reader import name_ranks
from spikeview.analysis.clocks import executed_steps
from spikeview.commands.between import listed
from spikeview.commands.checks import check_items, checklist_items
from spikeview.commands.lacking import lacking
from spikeview.commands.lines import BLANK, Item, item, lower
from spikeview.format import label, plural, printable, scalar, shown, words
from spikeview.meaning import hides_nonfinite, onset
from spikeview.report.headline import no_incident
from spikeview.rules.checklist import checklist
from spikeview.rules.diagnosis import Diagnosed, Diagnosis, Elsewhere
from spikeview.rules.finding import Finding, Outcome, Verdict
from spikeview.rules.habits import habits
from spikeview.rules.replayed import captures_within
from spikeview.rules.wording import name_rows, reading, row_of
from spikeview.run import Run

NAME = 14
CAPTURE = "capture"

_SEVERITY = {"critical": "bold red", "warning": "bold yellow"}
_REASON = {"skipped": "attempted, not executed", "not_moved": "executed, nothing moved"}
_BEGINS = {"drift": ": from here on it rises slowly"}


def card(diagnosis: Diagnosis, listed: bool = False) -> Iterator[Item]:
    """The items of a diagnosis, from the head to the checks, and to the checklist where it is `listed`."""
    yield Text(), head_of(diagnosis)
    for note in diagnosis.run.notes:
        yield item("!", "yellow", f"note: {note}")
    if not diagnosis.incidents and (not diagnosis.judged_rows or diagnosis.unjudged):
        yield item("?", "yellow", no_incident(diagnosis))
    for number, diagnosed in enumerate(diagnosis.incidents, start=1):
        yield BLANK
        yield from _incident(number, diagnosed)
    if often := habits(diagnosis):
        yield BLANK
        yield from (item("~", "yellow", each.text) for each in often)
    yield BLANK
    yield from check_items(diagnosis.run, diagnosis.checks)
    if listed:
        yield from checklist_items(checklist(diagnosis))


def head_of(diagnosis: Diagnosis) -> Text:
    """`mlp  6 rows, 4 executed, 1 incident, 1 check failed`."""
    run, found = diagnosis.run, len(diagnosis.incidents)
    failed = sum(check.outcome is Outcome.FAILED for check in diagnosis.checks)
    executed = "executed not recorded"
    if run.recorded("executed").any():
        executed = f"{executed_steps(run):,} executed"
    incidents = plural(found, "incident") if found else "no incident"
    head = Text.assemble((shown(run.name), "bold"), _rank(diagnosis), f"  {plural(len(run), 'row')}, {executed}, ")
    head.append(incidents, "bold red" if found else "bold green" if diagnosis.judged_rows else "bold yellow")
    return head.append(f", {plural(failed, 'check')} failed", "bold red") if failed else head


def _incident(number: int, diagnosed: Diagnosed) -> Iterator[Item]:
    incident, run = diagnosed.incident, diagnosed.view.run
    onset_at = where(run, incident.first_bad.position, _onset(diagnosed))
    kind = (f"{incident.severity}, {incident.persistence}", _SEVERITY[incident.severity])
    yield Text(), Text.assemble((f"Incident {number}", "bold"), f"  {onset_at}  ", kind)
    for name, fact in facts(diagnosed).items():
        yield Text(f"  {name:<{NAME}}", style="dim"), Text(printable(fact))
        if name == CAPTURE:
            yield Text("    "), Text(printable(replay_command(diagnosed)), style="cyan", no_wrap=True)
    for finding in _with(diagnosed, Verdict.MATCHED):
        yield item("*", "red", finding.observation, "bold")
        yield item(" ", "", finding.evidence)
        yield item(" ", "", f"look at: {finding.look}", "cyan")
        if finding.next:
            yield item(" ", "", f"next: {finding.next}")
    wanting, columns, others = lacking(diagnosed.view.run, _with(diagnosed, Verdict.CANNOT_TELL))
    for finding in others:
        yield item("?", "yellow", f"cannot tell: {lower(finding.observation)}: {finding.evidence}")
    if wanting:
        names = "; ".join(lower(finding.observation) for finding in wanting)
        yield item("?", "yellow", f"cannot tell without {columns}: {names}")
    if ruled_out := _with(diagnosed, Verdict.RULED_OUT):
        names = "; ".join(lower(finding.observation) for finding in ruled_out)
        yield item("-", "dim", f"ruled out: {names}", "dim")


def facts(diagnosed: Diagnosed) -> dict[str, str]:
    """What is said of an incident before its findings, by name."""
    incident, run, transition = diagnosed.incident, diagnosed.view.run, diagnosed.transition
    first = incident.first_bad
    value, begun = reading(run, diagnosed.view.baselines, first.signal, first.position), _onset(diagnosed)
    facts = {**captures(diagnosed), "first bad": _REASON.get(first.reason, value) + _BEGINS.get(first.reason, "")}
    if transition is None and diagnosed.transition_unknown:
        facts["transition"] = "which came before is not known: executed was not recorded"
    elif transition is None:
        facts["transition"] = "none executed before it"
    elif begun is not None:
        facts["transition"] = f"{where(run, transition)}: the last one logged before it; those between are not"
    elif transition == first.position:
        facts["transition"] = f"{where(run, transition)}: its own update"
    else:
        facts["transition"] = f"{where(run, transition)}: the last executed before it"
    if incident.lead and not hides_nonfinite(run, "loss", first.position):
        facts["lead"] = ", ".join(
            f"{label(lead.signal)} {plural(lead.rows_ahead, 'row')} before the loss" for lead in incident.lead
        )
    facts["extent"] = name_rows(run, np.arange(first.position, incident.last + 1))
    facts["last healthy"] = "none" if incident.last_healthy is None else f"row {row_of(run, incident.last_healthy)}"
    if diagnosed.ranks:
        facts["ranks"] = f"first on rank {run.rank}, seen on {name_ranks(diagnosed.ranks)}"
    if diagnosed.elsewhere is not None and (others := _others(diagnosed.elsewhere, first.signal)):
        facts["other ranks"] = others
    return facts


def _others(found: Elsewhere, signal: str) -> str:
    """How far the other ranks were from the first one when it was first bad."""
    told = []
    if found.lowest is not None and found.highest is not None:
        ends = dict.fromkeys(scalar(signal, value) for value in (found.lowest, found.highest))
        told.append(f"{label(signal)} {' to '.join(ends)} there")
    if found.nonfinite:
        told.append(f"not finite on {plural(found.nonfinite, 'other rank')} either")
    return ", ".join(told)


def captures(diagnosed: Diagnosed) -> dict[str, str]:
    """What came of the captures of an incident's rows, and else that one can be fed again: `replay_command` does it."""
    found = captures_within(diagnosed.view.run, diagnosed.incident, diagnosed.transition)
    replayed = [f"row {each.row}: {each.replay.summary}" for each in found if each.replay is not None]
    if replayed:
        return {"replay": ". ".join(replayed)}
    rows = [f"row {each.row}" for each in found if each.command is not None]
    return (
        {CAPTURE: f"{listed(rows)} captured; to feed {'it' if len(rows) == 1 else 'the first'} again:"} if rows else {}
    )


def replay_command(diagnosed: Diagnosed) -> str:
    """What feeds the first bad row again, or the first of the incident that was captured; empty where none was."""
    found = captures_within(diagnosed.view.run, diagnosed.incident, diagnosed.transition)
    return next((each.command for each in found if each.command is not None), "")


def _onset(diagnosed: Diagnosed) -> tuple[int, int] | None:
    """First and last step of the onset, where a log only bounds it."""
    first = diagnosed.incident.first_bad
    return onset(diagnosed.view.run, first.signal, first.position)


def where(run: Run, position: int, begun: tuple[int, int] | None = None) -> str:
    """`step 2, row 2, batch 2`."""
    step = f"step {int(run.values('step')[position])}, " if run.recorded("step")[position] else ""
    if begun is not None:
        step = f"steps {begun[0]} to {begun[1]}, "
    batch = f", batch {words(run, 'batch_id', position)}" if run.recorded("batch_id")[position] else ""
    return f"{step}row {row_of(run, position)}{batch}"


def _rank(diagnosis: Diagnosis) -> str:
    if diagnosis.ranks:
        return f" ({name_ranks(diagnosis.ranks)})"
    return f" (rank {diagnosis.run.rank})" if diagnosis.run.rank else ""


def _with(diagnosed: Diagnosed, verdict: Verdict) -> list[Finding]:
    return [finding for finding in diagnosed.findings if finding.verdict is verdict]
