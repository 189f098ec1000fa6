"""The incidents of the other ranks as a list of buttons, in the left column."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from recorder.store.reader import name_ranks
from spikeview.format import count
from spikeview.rules.diagnosis import Diagnosed
from spikeview.ui.labels import cleared, heading, muted
from spikeview.ui.session import Session
from spikeview.ui.values import step_label, told

MOST = 8


def line(diagnosed: Diagnosed) -> str:
    """`rank 3 · step 120 loss Inf`, and which ranks saw it too."""
    first = diagnosed.incident.first_bad
    others = [rank for rank in diagnosed.ranks if rank != diagnosed.view.run.rank]
    too = f" · {name_ranks(others)} too" if others else ""
    what = " ".join(told(first)).strip()
    return f"rank {diagnosed.view.run.rank} · step {step_label(diagnosed.view.run, first.position)} {what}{too}"


class OtherRanks(QWidget):
    """Only there where another rank saw an incident first. A click shows that rank at it."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self.setAccessibleName("Incidents of other ranks")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(heading("On other ranks", self))
        self._lines = QVBoxLayout()
        column.addLayout(self._lines)
        session.elsewhere.changed.connect(self._fill)
        self.hide()

    def _fill(self) -> None:
        cleared(self._lines)
        found = self._session.elsewhere.found
        self.setVisible(bool(found))
        for at, each in enumerate(found[:MOST]):
            button = QPushButton(line(each), self)
            button.setObjectName("line")
            button.setCursor(Qt.CursorShape.PointingHandCursor)
            button.setToolTip(line(each))
            button.setProperty("at", at)
            button.clicked.connect(self._on_clicked)
            self._lines.addWidget(button)
            button.show()
        if len(found) > MOST:
            self._lines.addWidget(muted(f"and {count(len(found) - MOST)} more", self))

    def _on_clicked(self) -> None:
        self._session.elsewhere.go_to(int(self.sender().property("at")))
