"""Writing the report in a worker: how far it is, and how it ended."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from spikeview.report.errors import ReportError
from spikeview.rules.diagnosis import Diagnosis
from spikeview.ui.recent import settings
from spikeview.ui.task import Task, Tell

if TYPE_CHECKING:
    from spikeview.ui.session import Session

log = logging.getLogger(__name__)

FOLDER = "reports"


def folder() -> str:
    """Where the last report went, while that is still there; else the home directory."""
    kept = str(settings().value(FOLDER) or "")
    return kept if kept and Path(kept).is_dir() else str(Path.home())


class Exporting(QObject):
    """The report of the selected incident, or of all; `task` is the one being written, `progress` how far it is.

    `last` is the report that was written, `failure` why the last one was not; both are told until they are dismissed.
    """

    changed = Signal()
    written = Signal(str)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._session = session
        self.task: Task | None = None
        self.progress = ""
        self.last: Path | None = None
        self.failure = ""

    def write(self, destination: Path) -> None:
        """Over a file that is there: whoever chose it was asked."""
        session = self._session
        if session.shown is None:
            return
        if not session.shown.diagnosed:
            session.told.emit("Still diagnosing: a report can be written when that is done.")
            return
        self.cancel()
        diagnosis, incident = session.shown.diagnosis, session.incident
        number = None if incident is None else incident + 1
        self._say(f"Writing {destination.name} …")
        work = partial(_written, diagnosis, number, destination)
        self.task = session.work.start(work, self._on_written, self._on_failed, self._say)
        self.changed.emit()

    def cancel(self) -> bool:
        """Stop writing; whether anything was being written."""
        if self.task is None:
            return False
        self.task.cancel()
        self.task = None
        self._say("")
        self._session.told.emit("The report was not written: cancelled.")
        return True

    def dismiss(self) -> bool:
        """Take note of how it ended; whether there was anything to note."""
        if self.last is None and not self.failure:
            return False
        self._say("")
        return True

    def _say(self, progress: str, last: Path | None = None, failure: str = "") -> None:
        self.progress, self.last, self.failure = progress, last, failure
        self.changed.emit()

    def _on_written(self, written: Path) -> None:
        if self.sender() is not self.task:
            return
        self.task = None
        settings().setValue(FOLDER, str(written.absolute().parent))
        self._say("", last=written)
        self._session.told.emit(f"Report written: {written}")
        self.written.emit(str(written))

    def _on_failed(self, error: Exception) -> None:
        if self.sender() is not self.task:
            return
        self.task = None
        if not isinstance(error, ReportError):
            log.error("the report was not written", exc_info=error)
        self._say("", failure=str(error) or type(error).__name__)
        self._session.told.emit(f"The report was not written: {error}")


def _written(diagnosis: Diagnosis, number: int | None, destination: Path, tell: Tell) -> Path:
    from spikeview.report.export import write_report  # which a window that writes none does not need

    return write_report(diagnosis, number, destination, told=lambda what: tell(f"Writing {destination.name}: {what} …"))
