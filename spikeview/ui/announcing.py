"""What a screen reader is told of by itself: where the cursor went, which incident is shown, what the foot says."""

from __future__ import annotations

from PySide6 import QtGui
from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QWidget

from spikeview.ui.headline import verdict
from spikeview.ui.incidents import card
from spikeview.ui.session import Session
from spikeview.ui.values import cell, step_label


def cursor_told(session: Session) -> str:
    """The transition under the cursor, the loss that it led to, and what left its baseline."""
    run = session.run
    where = "start" if session.cursor < 0 else f"step {step_label(run, session.cursor)}"
    if session.observed is None:
        return f"{where}, the recording ends here"
    loss = cell(session.view, "loss", session.observed)
    led_to = f"leads to loss {loss.text} {loss.away}".rstrip()
    return f"{where}, {led_to}, {''.join(span.text for span in verdict(session))}"


def incident_told(session: Session) -> str:
    """Which incident of how many, and what its card says; empty where none is chosen."""
    chosen = session.selected
    if chosen is None or session.incident is None:
        return ""
    said = ", ".join("".join(span.text for span in line) for line in card(chosen, session.skips(chosen)))
    return f"Incident {session.incident + 1} of {len(session.incidents)}: {said}"


class Announcer(QObject):
    """Says nothing where no screen reader listens, and on a Qt before 6.8, which has no announcements."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session, self._widget = session, parent
        session.cursor_changed.connect(self._on_cursor)
        session.incident_changed.connect(self._on_incident)
        session.told.connect(self._say)
        session.follow.announced.connect(self._say)

    def _on_cursor(self) -> None:
        if QAccessible.isActive():
            self._say(cursor_told(self._session))

    def _on_incident(self) -> None:
        if QAccessible.isActive():
            self._say(incident_told(self._session))

    def _say(self, text: str) -> None:
        event = getattr(QtGui, "QAccessibleAnnouncementEvent", None)
        if text and event is not None and QAccessible.isActive():
            QAccessible.updateAccessibility(event(self._widget, text))
