"""The line above the foot while a report is written, and after: cancel, open, show in its folder, or why it failed."""

from __future__ import annotations

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QPushButton, QSizePolicy, QWidget

from spikeview.format import printable
from spikeview.ui.fonts import scaled
from spikeview.ui.session import Session


class ExportBar(QFrame):
    """Only there while there is something to say; `again_wanted` asks for another place after a failure."""

    again_wanted = Signal()

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self.setObjectName("foot")
        self.setAccessibleName("Report")
        self._text = QLabel(self)
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._busy = QProgressBar(self)
        self._busy.setRange(0, 0)
        self._busy.setTextVisible(False)
        self._busy.setFixedSize(scaled(120), scaled(6))
        self._busy.setAccessibleName("The report is being written")
        self.cancel = self._button("Cancel", self._on_cancel)
        self.open = self._button("Open", self._on_open)
        self.show_folder = self._button("Show in folder", self._on_show_folder)
        self.again = self._button("Another place …", self.again_wanted)
        self.done = self._button("Dismiss", self._on_done)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 4, 12, 4)
        row.setSpacing(10)
        row.addWidget(self._busy)
        row.addWidget(self._text, 1)
        for button in (self.cancel, self.open, self.show_folder, self.again, self.done):
            row.addWidget(button)
        session.exporting.changed.connect(self._fill)
        self.hide()

    @property
    def text(self) -> str:
        return self._text.text()

    def _button(self, text: str, slot: object) -> QPushButton:
        button = QPushButton(text, self)
        button.clicked.connect(slot)
        return button

    def _fill(self) -> None:
        exporting = self._session.exporting
        writing, written, failure = exporting.task is not None, exporting.last, exporting.failure
        told = f"Report written: {written}" if written else f"No report: {failure}" if failure else exporting.progress
        self._text.setText(printable(told))
        self._text.setToolTip(printable(told))
        self._busy.setVisible(writing)
        self.cancel.setVisible(writing)
        for button in (self.open, self.show_folder):
            button.setVisible(written is not None)
        self.again.setVisible(bool(failure))
        self.done.setVisible(not writing)
        self.setVisible(writing or written is not None or bool(failure))

    def _on_cancel(self) -> None:
        self._session.exporting.cancel()

    def _on_open(self) -> None:
        self._open(str(self._session.exporting.last))

    def _on_show_folder(self) -> None:
        assert self._session.exporting.last is not None
        self._open(str(self._session.exporting.last.absolute().parent))

    def _open(self, path: str) -> None:
        """With whatever the desktop has for it, which may be nothing."""
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(path)):
            self._session.told.emit(f"Nothing here opens {printable(path)}.")

    def _on_done(self) -> None:
        self._session.exporting.dismiss()
