"""The triage table of an incident: what matched with its evidence, what cannot be told, what was ruled out."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from spikeview.rules.finding import Finding, Verdict
from spikeview.ui.fonts import scaled
from spikeview.ui.labels import ElidedLine, cleared, placed
from spikeview.ui.session import Session
from spikeview.ui.spans import Span, html

ORDER = (Verdict.MATCHED, Verdict.CANNOT_TELL, Verdict.RULED_OUT)
SIGNS = {
    Verdict.MATCHED: Span("●", "bad"),
    Verdict.CANNOT_TELL: Span("?", "muted", bold=True),
    Verdict.RULED_OUT: Span("○", "muted"),
}


class Triage(QWidget):
    """Matched rows first, each with where to look; a rule that was ruled out takes one line."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self.setAccessibleName("Triage table")
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(5)
        self._grid.setColumnStretch(1, 1)

    def show_findings(self, findings: tuple[Finding, ...]) -> None:
        cleared(self._grid)
        for row, finding in enumerate(sorted(findings, key=lambda finding: ORDER.index(finding.verdict))):
            sign = QLabel(html([SIGNS[finding.verdict]], self._session.theme), self)
            sign.setAccessibleName(finding.verdict.replace("_", " "))
            text: QWidget
            if finding.verdict == Verdict.RULED_OUT:
                spans = [Span(finding.observation), Span(f" · {finding.evidence}" if finding.evidence else "")]
                text = ElidedLine(spans, self._session, self)
            else:
                text = self._paragraph(finding)
            text.setToolTip(finding.evidence)
            placed(self._grid, row, sign, text)

    def _paragraph(self, finding: Finding) -> QLabel:
        label = QLabel(self._text(finding), self)
        label.setWordWrap(True)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        return label

    def _text(self, finding: Finding) -> str:
        theme, size = self._session.theme, scaled(11)
        if finding.verdict == Verdict.MATCHED:
            small = f'<span style="font-size:{size}px">'
            evidence = f"{small}{html([Span(finding.evidence, 'text')], theme)}</span>"
            look = f"{small}{html([Span(f'look at: {finding.look}')], theme)}</span>"
            return "<br>".join([html([Span(finding.observation, "text")], theme), evidence, look])
        why = finding.evidence
        if finding.verdict == Verdict.CANNOT_TELL and finding.missing:
            why = f"not recorded: {', '.join(finding.missing)}"
        after = f' <span style="font-size:{size}px">{html([Span("· " + why)], theme)}</span>' if why else ""
        return html([Span(finding.observation)], theme) + after
