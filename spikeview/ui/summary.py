"""The left column: which incidents, which checks, which run."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QWidget

from spikeview.meaning import is_log
from spikeview.report.headline import no_incident
from spikeview.rules.finding import CheckResult
from spikeview.ui.checks import Checks
from spikeview.ui.column import Column
from spikeview.ui.fonts import fixed_font
from spikeview.ui.incidents import IncidentList
from spikeview.ui.labels import cleared, heading, muted, placed
from spikeview.ui.other_ranks import OtherRanks
from spikeview.ui.session import Session

WIDTH = 240

Told = tuple[tuple[CheckResult, ...], tuple[tuple[str, str], ...]]


class Summary(Column):
    """The incidents as cards, the checks with the failed ones first, and what the run says of itself.

    What says the same as before stays: a live run is told of several times a second.
    """

    columns_wanted = Signal()

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__("left", WIDTH, parent)
        self._session = session
        self.setAccessibleName("Incidents, checks and the run")
        inside, column = self.inside, self.stack
        column.setSpacing(8)
        self._told: Told = ((), ())
        self._none = muted("", inside)
        self._incidents = IncidentList(session, inside)
        self._checks_heading = heading("Checks", inside)
        self._checks_heading.hide()
        self._checks, self._facts = Checks(session, inside), QGridLayout()
        column.addWidget(heading("Incidents", inside))
        column.addWidget(self._none)
        column.addWidget(self._incidents)
        column.addWidget(OtherRanks(session, inside))
        column.addSpacing(6)
        column.addWidget(self._checks_heading)
        column.addWidget(self._checks)
        column.addSpacing(8)
        column.addWidget(heading("Run", inside))
        column.addLayout(self._facts)
        column.addStretch(1)
        self._facts.setHorizontalSpacing(9)
        self._facts.setVerticalSpacing(6)
        self._facts.setColumnStretch(1, 1)
        self._columns = QPushButton("Columns of the log …  L", inside)
        self._columns.setToolTip("Which of its columns is taken for what")
        self._columns.clicked.connect(self.columns_wanted)
        self._columns.hide()
        column.insertWidget(column.count() - 1, self._columns)
        for signal in (session.opened, session.grown):
            signal.connect(self._fill)

    def _fill(self) -> None:
        if self._session.shown is None:
            return
        done = self._session.shown.diagnosed
        self._none.setText(f"{no_incident(self._session.shown.diagnosis)}." if done else "Diagnosing …")
        self._none.setVisible(not self._session.incidents)
        shown = self._session.shown
        told: Told = (shown.diagnosis.checks, tuple(shown.facts))
        if told[0] != self._told[0]:
            self._checks_heading.setVisible(bool(shown.diagnosis.checks))
            self._checks.show_checks(shown.diagnosis.checks)
        self._columns.setVisible(is_log(shown.diagnosis.run))
        if told[1] != self._told[1]:
            self._fill_facts()
        self._told = told

    def _fill_facts(self) -> None:
        cleared(self._facts)
        inside = self.inside
        assert self._session.shown is not None
        for row, (name, value) in enumerate(self._session.shown.facts):
            told = QLabel(inside)
            told.setTextFormat(Qt.TextFormat.PlainText)
            told.setText(value)
            told.setFont(fixed_font())
            told.setWordWrap(True)
            told.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            placed(self._facts, row, muted(name, inside), told)
