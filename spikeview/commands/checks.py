"""The checks and the checklist as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spikeview.commands.lacking import lacking
from spikeview.commands.lines import BLANK, Item, heading, item, lower
from spikeview.format import plural
from spikeview.rules.checklist import Item as Listed
from spikeview.rules.checklist import Section
from spikeview.rules.finding import CheckResult, Outcome
from spikeview.run import Run

MARKS = {
    Outcome.FAILED: ("x", "red"),
    Outcome.CANNOT_TELL: ("?", "yellow"),
    Outcome.PASSED: ("+", "dim"),
    Outcome.NOT_APPLICABLE: ("-", "dim"),
}
HEADINGS = {Section.MISTAKE: "Common mistakes", Section.LAUNCH: "Before a launch"}


FEW = 4


def check_items(run: Run, checks: Sequence[CheckResult]) -> Iterator[Item]:
    """Failed checks with their evidence and the next step, then the others, each outcome in one paragraph.

    Of what cannot be told the columns that would tell come first.
    """
    yield heading("Checks")
    for check in _with(checks, Outcome.FAILED):
        yield item("x", "red", check.title, "bold")
        yield item(" ", "", check.evidence)
        if check.next:
            yield item(" ", "", f"next: {check.next}")
    wanting, columns, others = lacking(run, _with(checks, Outcome.CANNOT_TELL))
    if wanting:
        names = "; ".join(lower(check.title) for check in wanting)
        what = names if len(wanting) <= FEW else f"{plural(len(wanting), 'check')}; --markdown and --json name them"
        yield item(*MARKS[Outcome.CANNOT_TELL], f"cannot tell without {columns}: {what}")
    if others:
        yield item(*MARKS[Outcome.CANNOT_TELL], f"cannot tell: {_untold(others)}")
    for outcome, name in ((Outcome.PASSED, "passed"), (Outcome.NOT_APPLICABLE, "not applicable")):
        if titles := [lower(check.title) for check in _with(checks, outcome)]:
            yield item(*MARKS[outcome], f"{name}: {'; '.join(titles)}", "dim")


def _untold(checks: Sequence[CheckResult]) -> str:
    """A few with the reason; of more, as of a short run, the reasons would fill the terminal."""
    if len(checks) < FEW:
        return "; ".join(f"{lower(check.title)} ({check.evidence})" for check in checks)
    return f"{'; '.join(lower(check.title) for check in checks)}; --markdown and --json say why"


def checklist_items(listed: Sequence[Listed]) -> Iterator[Item]:
    """Every line of the checklist with its answer."""
    for section, title in HEADINGS.items():
        yield BLANK
        yield heading(title)
        for each in listed:
            if each.section is section:
                yield item(*MARKS[each.outcome], f"{each.title}: {each.word} ({each.evidence})")


def _with(checks: Sequence[CheckResult], outcome: Outcome) -> list[CheckResult]:
    return [check for check in checks if check.outcome is outcome]
