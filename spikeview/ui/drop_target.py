"""A window that opens what is dropped on it."""

from __future__ import annotations

from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QMainWindow

from spikeview.ui.session import Session


class DropTarget(QMainWindow):
    """Takes files and directories of this machine, and of several the first."""

    session: Session

    def __init__(self) -> None:
        super().__init__()
        self.setAcceptDrops(True)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        self.session.opener.open(next(url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()))
        event.acceptProposedAction()
