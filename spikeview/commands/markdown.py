"""A diagnosis as Markdown, to paste where colleagues read it: without the report's libraries."""

from __future__ import annotations

from collections.abc import Iterator

from spikeview.commands.between import alike, alone_text, shared_text
from spikeview.commands.card import CAPTURE, facts, head_of, replay_command, where
from spikeview.commands.lacking import lacking
from spikeview.format import sentence
from spikeview.report.markdown import code, prose
from spikeview.rules.between import Between
from spikeview.rules.checklist import Item, Section, checklist
from spikeview.rules.diagnosis import Diagnosed, Diagnosis
from spikeview.rules.finding import Finding, Outcome, Verdict
from spikeview.rules.habits import habits

SECTIONS = {Section.MISTAKE: "Common mistakes", Section.LAUNCH: "Before a launch"}


def markdown(diagnosis: Diagnosis, listed: bool) -> str:
    """One run; with the checklist where it is `listed`."""
    lines = [f"# {prose(head_of(diagnosis).plain)}", ""]
    for note in diagnosis.run.notes:
        lines += [f"> note: {prose(note)}", ""]
    for number, diagnosed in enumerate(diagnosis.incidents, start=1):
        lines += [*_incident(number, diagnosed), ""]
    if often := habits(diagnosis):
        lines += [*(f"- {prose(each.text)}" for each in often), ""]
    lines += ["## Checks", "", *_checks(diagnosis)]
    if listed:
        lines += [line for section in SECTIONS for line in _listed(section, checklist(diagnosis))]
    return "\n".join(lines) + "\n"


def between_markdown(found: Between) -> str:
    """What several runs share."""
    told = [shared_text(group) for group in alike(found.shared)] + [alone_text(each) for each in found.alone]
    lines = [f"- {prose(text)}" for text in told] or ["No incident in any of them."]
    return "\n".join(["# Between the runs", "", *lines]) + "\n"


def _incident(number: int, diagnosed: Diagnosed) -> Iterator[str]:
    incident, run = diagnosed.incident, diagnosed.view.run
    place = where(run, incident.first_bad.position)
    yield f"## Incident {number}: {prose(place)} ({incident.severity}, {incident.persistence})"
    yield ""
    for name, text in facts(diagnosed).items():
        command = f" {code(replay_command(diagnosed))}" if name == CAPTURE else ""
        yield f"- {name}: {prose(text)}{command}"
    yield ""
    untold = [finding for finding in diagnosed.findings if finding.verdict is Verdict.CANNOT_TELL]
    wanting, columns, others = lacking(run, untold)
    matched = [finding for finding in diagnosed.findings if finding.verdict is Verdict.MATCHED]
    yield from (f"- {_finding(finding)}" for finding in (*matched, *others))
    if wanting:
        yield f"- cannot tell without {prose(columns)}: {'; '.join(prose(each.observation) for each in wanting)}"
    ruled_out = [prose(each.observation) for each in diagnosed.findings if each.verdict is Verdict.RULED_OUT]
    if ruled_out:
        yield f"- ruled out: {'; '.join(ruled_out)}"


def _finding(finding: Finding) -> str:
    if finding.verdict is Verdict.CANNOT_TELL:
        return f"cannot tell: {prose(finding.observation)}: {prose(finding.evidence)}"
    said = f"**{prose(finding.observation)}.** {prose(sentence(finding.evidence))}"
    step = f" Next: {prose(sentence(finding.next))}" if finding.next else ""
    return f"{said} Look at: {prose(sentence(finding.look))}{step}"


def _checks(diagnosis: Diagnosis) -> Iterator[str]:
    yield "| check | | evidence |"
    yield "|---|---|---|"
    for outcome in Outcome:
        for check in diagnosis.checks:
            if check.outcome is outcome:
                word = outcome.value.replace("_", " ")
                mark = f"**{word}**" if outcome is Outcome.FAILED else word
                step = f" Next: {prose(sentence(check.next))}" if check.next else ""
                yield f"| {prose(check.title)} | {mark} | {prose(sentence(check.evidence))}{step} |"


def _listed(section: Section, items: tuple[Item, ...]) -> Iterator[str]:
    yield from ("", f"## {SECTIONS[section]}", "", "| | | evidence |", "|---|---|---|")
    for item in items:
        if item.section is section:
            word = f"**{item.word}**" if item.outcome is Outcome.FAILED else item.word
            yield f"| {prose(item.title)} | {word} | {prose(item.evidence)} |"
