"""A diagnosis as a person reads it at a glance over SSH: 80 columns, colour only on a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from spikeview.format import label, plural, printable, shown, words
from spikeview.report.headline import no_incident
from spikeview.rules.diagnosis import Diagnosed, Diagnosis
from spikeview.rules.finding import CheckResult, Finding, Outcome, Verdict
from spikeview.rules.wording import name_rows, reading, row_of
from spikeview.run import Run

WIDEST = 100
NARROWEST = 40
NAME = 14

# What stands in front of an item, and the item itself, which stays right of it where it wraps.
Item = tuple[Text, Text]

_SEVERITY = {"critical": "bold red", "warning": "bold yellow"}
_REASON = {"skipped": "attempted, not executed", "not_moved": "executed, nothing moved"}


def show(diagnosis: Diagnosis, first: bool = True) -> None:
    """Print a diagnosis to standard output, after a blank line unless it is the `first`."""
    console = Console(highlight=False, emoji=False)
    width = max(NARROWEST, min(console.width, WIDEST))
    with console.capture() as captured:  # rich itself would end the process on a broken pipe
        for head, body in card(diagnosis):
            for line in wrapped(body, width - len(head)):
                console.print(Text.assemble(head, line), soft_wrap=True)
                head = Text(" " * len(head))
    click.echo(("" if first else "\n") + captured.get(), nl=False)


def card(diagnosis: Diagnosis) -> Iterator[Item]:
    """The items of a diagnosis, from the head to the checks."""
    yield Text(), _head(diagnosis)
    for note in diagnosis.run.notes:
        yield _item("!", "yellow", f"note: {note}")
    if not diagnosis.incidents and (not diagnosis.judged_rows or diagnosis.unjudged):
        yield _item("?", "yellow", no_incident(diagnosis))
    for number, diagnosed in enumerate(diagnosis.incidents, start=1):
        yield Text(), Text()
        yield from _incident(number, diagnosed)
    yield Text(), Text()
    yield from _checks(diagnosis.checks)


def wrapped(text: Text, width: int) -> list[Text]:
    """The text in lines of whole words; one that is longer than a line stays whole: paths and ids are to be copied."""
    breaks, begin = [], 0
    for word in re.finditer(r"\S+", text.plain):
        if word.start() > begin and cell_len(text.plain[begin : word.end()]) > width:
            begin = word.start()
            breaks.append(begin)
    lines = list(text.divide(breaks))
    for line in lines:
        line.rstrip()
    return lines


def _head(diagnosis: Diagnosis) -> Text:
    run, found = diagnosis.run, len(diagnosis.incidents)
    failed = sum(check.outcome is Outcome.FAILED for check in diagnosis.checks)
    executed = "executed not recorded"
    if run.recorded("executed").any():
        executed = f"{np.count_nonzero(run.values('executed')):,} executed"
    incidents = plural(found, "incident") if found else "no incident"
    head = Text.assemble((shown(run.name), "bold"), _rank(run), f"  {plural(len(run), 'row')}, {executed}, ")
    head.append(incidents, "bold red" if found else "bold green" if diagnosis.judged_rows else "bold yellow")
    return head.append(f", {plural(failed, 'check')} failed", "bold red") if failed else head


def _incident(number: int, diagnosed: Diagnosed) -> Iterator[Item]:
    incident, run = diagnosed.incident, diagnosed.view.run
    where = _where(run, incident.first_bad.position)
    kind = (f"{incident.severity}, {incident.persistence}", _SEVERITY[incident.severity])
    yield Text(), Text.assemble((f"Incident {number}", "bold"), f"  {where}  ", kind)
    for name, fact in _facts(diagnosed).items():
        yield Text(f"  {name:<{NAME}}", style="dim"), Text(printable(fact))
    for finding in _with(diagnosed, Verdict.MATCHED):
        yield _item("*", "red", finding.observation, "bold")
        yield _item(" ", "", finding.evidence)
        yield _item(" ", "", f"look at: {finding.look}", "cyan")
    for finding in _with(diagnosed, Verdict.CANNOT_TELL):
        yield _item("?", "yellow", f"cannot tell: {_lower(finding.observation)}: {finding.evidence}")
    if ruled_out := _with(diagnosed, Verdict.RULED_OUT):
        names = "; ".join(_lower(finding.observation) for finding in ruled_out)
        yield _item("-", "dim", f"ruled out: {names}", "dim")


def _facts(diagnosed: Diagnosed) -> dict[str, str]:
    incident, run, transition = diagnosed.incident, diagnosed.view.run, diagnosed.transition
    first = incident.first_bad
    value = reading(run, diagnosed.view.baselines, first.signal, first.position)
    facts = {"first bad": _REASON.get(first.reason, value)}
    if transition is None and diagnosed.transition_unknown:
        facts["transition"] = "which came before is not known: executed was not recorded"
    elif transition is None:
        facts["transition"] = "none executed before it"
    elif transition == first.position:
        facts["transition"] = f"{_where(run, transition)}: its own update"
    else:
        facts["transition"] = f"{_where(run, transition)}: the last executed before it"
    if incident.lead:
        facts["lead"] = ", ".join(
            f"{label(lead.signal)} {plural(lead.rows_ahead, 'row')} before the loss" for lead in incident.lead
        )
    facts["extent"] = name_rows(run, np.arange(first.position, incident.last + 1))
    facts["last healthy"] = "none" if incident.last_healthy is None else f"row {row_of(run, incident.last_healthy)}"
    return facts


def _where(run: Run, position: int) -> str:
    step = f"step {int(run.values('step')[position])}, " if run.recorded("step")[position] else ""
    batch = f", batch {words(run, 'batch_id', position)}" if run.recorded("batch_id")[position] else ""
    return f"{step}row {row_of(run, position)}{batch}"


def _rank(run: Run) -> str:
    return f" (rank {run.rank})" if run.rank else ""


def _checks(checks: tuple[CheckResult, ...]) -> Iterator[Item]:
    yield Text(), Text("Checks", style="bold")
    for check in checks:
        if check.outcome is Outcome.FAILED:
            yield _item("x", "red", check.title, "bold")
            yield _item(" ", "", check.evidence)
    for check in checks:
        if check.outcome is Outcome.CANNOT_TELL:
            yield _item("?", "yellow", f"cannot tell: {_lower(check.title)}: {check.evidence}")
    for outcome, mark, name in ((Outcome.PASSED, "+", "passed"), (Outcome.NOT_APPLICABLE, "-", "not applicable")):
        if titles := [_lower(check.title) for check in checks if check.outcome is outcome]:
            yield _item(mark, "dim", f"{name}: {'; '.join(titles)}", "dim")


def _with(diagnosed: Diagnosed, verdict: Verdict) -> list[Finding]:
    return [finding for finding in diagnosed.findings if finding.verdict is verdict]


def _item(mark: str, mark_style: str, text: str, style: str = "") -> Item:
    return Text(f"  {mark} ", style=mark_style), Text(printable(text), style=style)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
