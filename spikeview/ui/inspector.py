"""The right column: t-1 -> theta_t -> L_t, the chain of that transition, its neighbours, the triage table."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from spikeview.report.headline import no_incident
from spikeview.ui.beside import Beside
from spikeview.ui.chain import Chain
from spikeview.ui.column import Column
from spikeview.ui.elided import ElidedLine
from spikeview.ui.fonts import scaled
from spikeview.ui.headline import chain_of_three, verdict
from spikeview.ui.labels import heading, muted
from spikeview.ui.neighbour_table import Neighbours
from spikeview.ui.session import Session
from spikeview.ui.spans import Span
from spikeview.ui.triage import Triage

WIDTH = 390


class Inspector(Column):
    """Follows the cursor; the triage table stays with the selected incident."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__("right", WIDTH, parent)
        self._session = session
        self.setAccessibleName("Inspector")
        inside, column = self.inside, self.stack
        self._heading = heading("", inside)
        self._title = QLabel(inside)
        self._title.setFixedSize(scaled(WIDTH) - 34, scaled(22))
        self._heading.setFixedSize(scaled(WIDTH) - 34, scaled(14))
        self._title.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._observed = ElidedLine([Span("nothing is open")], session, inside)
        self._chain = Chain(session, inside)
        self._neighbours = Neighbours(session, inside)
        self._beside = Beside(session, inside)
        self._triage_heading = heading("Triage", inside)
        self._none = muted("", inside)
        self._triage = Triage(session, inside)
        column.setSpacing(5)
        around = heading("Neighbours", inside)
        head = QVBoxLayout()
        head.setSpacing(1)
        for part in (self._heading, self._title, self._observed):
            head.addWidget(part)
        column.addLayout(head)
        column.addSpacing(scaled(3))
        column.addWidget(self._chain)
        for title, parts in (
            (around, [self._neighbours, self._beside]),
            (self._triage_heading, [self._none, self._triage]),
        ):
            column.addSpacing(scaled(4))
            column.addWidget(title)
            for widget in parts:
                column.addWidget(widget)
        column.addStretch(1)
        session.cursor_changed.connect(self._show_transition)
        session.incident_changed.connect(self._show_triage)
        for signal in (session.opened, session.grown, session.theme_changed):
            signal.connect(self._show_all)

    def _show_all(self) -> None:
        if self._session.shown is not None:
            self._show_transition()
            self._show_triage()

    def _show_transition(self) -> None:
        session = self._session
        self._heading.setText(self._what().upper())
        self._title.setText(chain_of_three(session, self._title.width()))
        self._observed.show_spans(verdict(session))
        self._chain.show_row(session.inspected)
        self._neighbours.show_around(session.inspected)

    def _what(self) -> str:
        if self._session.cursor < 0:
            return "The first row: no transition before it"
        chosen = self._session.selected
        if chosen is None or not self._session.at_incident:
            return "Transition"
        if chosen.transition is None:
            return "The row before the first bad observation"
        own = chosen.transition == chosen.incident.first_bad.position
        return "Transition of the first bad update" if own else "Transition before the first bad observation"

    def _show_triage(self) -> None:
        session = self._session
        chosen = session.selected
        self._triage.setVisible(chosen is not None)
        self._none.setVisible(chosen is None)
        if chosen is not None:
            many = len(session.incidents) > 1
            self._triage_heading.setText(
                f"TRIAGE OF INCIDENT {session.incident + 1}" if many and session.incident is not None else "TRIAGE"
            )
            self._triage.show_findings(chosen.findings)
            return
        self._triage_heading.setText("TRIAGE")
        assert session.shown is not None
        self._none.setText(
            "Choose an incident on the left, or press N."
            if session.incidents
            else "Diagnosing …"
            if not session.shown.diagnosed
            else f"{no_incident(session.shown.diagnosis)}."
        )
