"""The triage table of an incident: what matched with its evidence, what cannot be told, what was ruled out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from spikeview.format import label
from spikeview.rules.finding import Finding, Verdict
from spikeview.ui.elided import ElidedLine
from spikeview.ui.fonts import scaled
from spikeview.ui.labels import cleared, placed
from spikeview.ui.session import Session
from spikeview.ui.spans import Span, html
from spikeview.ui.theme import Theme
from spikeview.ui.themed import ThemedLabel

SIGNS = {
    Verdict.MATCHED: Span("●", "bad"),
    Verdict.CANNOT_TELL: Span("?", "muted", bold=True),
    Verdict.RULED_OUT: Span("○", "muted"),
}
TITLE, BODY, SMALL = 13, 12, 11

Line = Sequence[tuple[int, Span]]  # pieces of a line of text, each with its size


class Triage(QWidget):
    """Findings in the order they come in, of relevance.

    Matched ones say where to look, and below what to try that could prove them wrong; ruled-out ones take one line.
    """

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self.setAccessibleName("Triage table")
        self._told: tuple[Finding, ...] = ()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(scaled(7))
        self._grid.setColumnStretch(1, 1)

    def show_findings(self, findings: Sequence[Finding]) -> None:
        """Those that are shown already stay as they are."""
        told = tuple(findings)
        if told == self._told:
            return
        self._told = told
        cleared(self._grid)
        for at, finding in enumerate(findings):
            row = 2 * at
            sign = ThemedLabel(partial(html, [SIGNS[finding.verdict]]), self._session, self)
            sign.setAccessibleName(finding.verdict.replace("_", " "))
            text = self._line(finding) if finding.verdict == Verdict.RULED_OUT else self._paragraph(finding)
            text.setToolTip(f"{finding.observation}: {_why(finding)}")
            placed(self._grid, row, sign, text)
            if finding.verdict == Verdict.MATCHED and finding.next:
                self._place_next(row + 1, finding.next)

    def _place_next(self, row: int, step: str) -> None:
        """What to try, in a line of its own: it may be scrolled to."""
        text = self._wrapped([[(BODY, Span("next: ", "accent")), (BODY, Span(step))]])
        text.setObjectName("muted")
        text.setAccessibleName("Next step")
        self._grid.addWidget(text, row, 1)
        text.show()

    def _line(self, finding: Finding) -> QWidget:
        spans = [Span(finding.observation), Span(f" · {finding.evidence}" if finding.evidence else "")]
        return ElidedLine(spans, self._session, self)

    def _paragraph(self, finding: Finding) -> QWidget:
        return self._wrapped(matched(finding) if finding.verdict == Verdict.MATCHED else untold(finding))

    def _wrapped(self, lines: Sequence[Line]) -> QLabel:
        text = ThemedLabel(partial(_written, lines), self._session, self)
        text.setWordWrap(True)
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        return text


def matched(finding: Finding) -> list[Line]:
    """What was found, of what, and where to look."""
    return [
        [(TITLE, Span(finding.observation, "text"))],
        [(BODY, Span(finding.evidence, "text"))],
        [(BODY, Span(f"look at: {finding.look}"))],
    ]


def untold(finding: Finding) -> list[Line]:
    """What cannot be told, and why."""
    why = _why(finding)
    return [[(BODY, Span(finding.observation)), *([(SMALL, Span(f" · {why}"))] if why else [])]]


def _written(lines: Sequence[Line], theme: Theme) -> str:
    return "<br>".join("".join(_sized(size, span, theme) for size, span in line) for line in lines)


def _sized(size: int, span: Span, theme: Theme) -> str:
    return f'<span style="font-size:{scaled(size)}px">{html([span], theme)}</span>'


def _why(finding: Finding) -> str:
    """The evidence, or what was not recorded."""
    if finding.evidence or not finding.missing:
        return finding.evidence
    return f"not recorded: {', '.join(label(column) for column in finding.missing)}"
