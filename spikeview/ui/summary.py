"""The left column: which incidents, which checks, which run."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from spikeview.report.headline import no_incident
from spikeview.rules.finding import CheckResult, Outcome
from spikeview.ui.column import Column
from spikeview.ui.facts import facts
from spikeview.ui.fonts import fixed_font
from spikeview.ui.incidents import IncidentList
from spikeview.ui.labels import cleared, heading, muted, placed
from spikeview.ui.session import Session
from spikeview.ui.spans import Span, html

SIGNS = {
    Outcome.FAILED: Span("✕", "bad", bold=True),
    Outcome.PASSED: Span("✓", "good", bold=True),
    Outcome.CANNOT_TELL: Span("?", "muted", bold=True),
    Outcome.NOT_APPLICABLE: Span("–", "muted"),
}
WIDTH = 240


class Summary(Column):
    """The incidents as cards, the checks with the failed ones first, and what the run says of itself."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__("left", WIDTH, parent)
        self._session = session
        self.setAccessibleName("Incidents, checks and the run")
        inside, column = self.inside, self.stack
        column.setSpacing(8)
        self._none = muted("", inside)
        self._incidents = IncidentList(session, inside)
        self._checks_heading = heading("Checks", inside)
        self._checks, self._facts = QGridLayout(), QGridLayout()
        column.addWidget(heading("Incidents", inside))
        column.addWidget(self._none)
        column.addWidget(self._incidents)
        column.addSpacing(6)
        column.addWidget(self._checks_heading)
        column.addLayout(self._checks)
        column.addSpacing(8)
        column.addWidget(heading("Run", inside))
        column.addLayout(self._facts)
        column.addStretch(1)
        for grid in (self._checks, self._facts):
            grid.setHorizontalSpacing(9)
            grid.setVerticalSpacing(6)
            grid.setColumnStretch(1, 1)
        session.opened.connect(self._fill)
        session.theme_changed.connect(self._fill)

    def _fill(self) -> None:
        if self._session.shown is None:
            return
        self._none.setText(f"{no_incident(self._session.shown.diagnosis)}.")
        self._none.setVisible(not self._session.incidents)
        self._fill_checks(self._session.shown.diagnosis.checks)
        self._fill_facts()

    def _fill_checks(self, checks: tuple[CheckResult, ...]) -> None:
        cleared(self._checks)
        self._checks_heading.setVisible(bool(checks))
        theme, inside = self._session.theme, self.inside
        for row, check in enumerate(sorted(checks, key=lambda check: list(Outcome).index(check.outcome))):
            tells = check.outcome in (Outcome.FAILED, Outcome.CANNOT_TELL) and check.evidence
            title = Span(check.title, "text" if check.outcome == Outcome.FAILED else "muted")
            spans = [title, Span(f" · {check.evidence}" if tells else "")]
            sign, text = QLabel(html([SIGNS[check.outcome]], theme), inside), QLabel(html(spans, theme), inside)
            sign.setAccessibleName(check.outcome.replace("_", " "))
            text.setWordWrap(True)
            text.setToolTip(check.evidence)
            placed(self._checks, row, sign, text)

    def _fill_facts(self) -> None:
        cleared(self._facts)
        inside = self.inside
        assert self._session.shown is not None
        for row, (name, value) in enumerate(facts(self._session.shown.diagnosis.run)):
            told = QLabel(inside)
            told.setTextFormat(Qt.TextFormat.PlainText)
            told.setText(value)
            told.setFont(fixed_font())
            told.setWordWrap(True)
            told.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            placed(self._facts, row, muted(name, inside), told)
