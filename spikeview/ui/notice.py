"""The message in the centre of the window: nothing open yet, opening, or why a run cannot be opened."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from spikeview.format import printable
from spikeview.ui.fonts import scaled
from spikeview.ui.labels import cleared, muted
from spikeview.ui.recent import recent
from spikeview.ui.session import Session


class Notice(QWidget):
    """Three lines and what can be done: open a run, a recent one, or go back to the one before."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self.setObjectName("message")
        self.setAccessibleName("Message")
        self.open_button = QPushButton("Open a run …", self)
        self.open_button.setObjectName("primary")
        self.back_button = QPushButton("Back", self)
        self.back_button.clicked.connect(self._go_back)
        self.columns_button = QPushButton("Choose its columns …", self)
        self._title, self._reason, self._advice = QLabel(self), QLabel(self), muted("", self)
        self._title.setObjectName("title")
        self._reason.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        for label in (self._title, self._reason, self._advice):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            label.setFixedWidth(scaled(560))
        self._recent = QVBoxLayout()
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.back_button)
        buttons.addWidget(self.open_button)
        buttons.addWidget(self.columns_button)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setSpacing(12)
        column.addStretch(2)
        for label in (self._title, self._reason, self._advice):
            column.addWidget(label, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addSpacing(8)
        column.addLayout(buttons)
        column.addLayout(self._recent)
        column.addStretch(3)
        session.status_changed.connect(self._fill)
        self._fill()

    @property
    def text(self) -> str:
        return "\n".join(label.text() for label in (self._title, self._reason, self._advice))

    def _fill(self) -> None:
        session, failure = self._session, self._session.opener.failure
        waiting = session.opener.waiting
        cleared(self._recent)
        if failure is not None:
            self._say(failure.title, failure.reason, failure.advice)
        elif waiting:
            self._say(f"Opening {session.opener.path}", session.opener.progress or "Reading …", "")
        else:
            self._say(
                "Drop a run directory here",
                "",
                "or open a recent one. A run is a directory that holds run.json; a directory of runs "
                "and logs of other trainers open too.",
            )
            self._offer_recent()
        self.open_button.setVisible(not waiting)
        self.columns_button.setVisible(failure is not None and bool(session.opener.unnamed))
        self.back_button.setText("Cancel" if waiting else "Back")
        self.back_button.setVisible(waiting or (failure is not None and session.shown is not None))

    def _go_back(self) -> None:
        if not self._session.opener.cancel():
            self._session.opener.dismiss()

    def _say(self, title: str, reason: str, advice: str) -> None:
        for label, text in ((self._title, title), (self._reason, reason), (self._advice, advice)):
            label.setText(printable(text))
            label.setVisible(bool(text))
        self._fit()

    def _fit(self) -> None:
        """A layout that centres a text asks not how high it is where it wraps."""
        for label in (self._title, self._reason, self._advice):
            label.setFixedHeight(max(0, label.heightForWidth(label.width())))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()  # by now the fonts are those of the theme

    def _offer_recent(self) -> None:
        for path in recent():
            button = QPushButton(path, self)
            button.setFlat(True)
            button.setProperty("path", path)
            button.clicked.connect(self._open_recent)
            self._recent.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)

    def _open_recent(self) -> None:
        self._session.opener.open(str(self.sender().property("path")))
