"""Opening a run in a worker: what is being read, how far it is, and what went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from spikeview.importers import Asked
from spikeview.importers.errors import UnnamedError
from spikeview.ui.failure import Failure, explain
from spikeview.ui.listing import Listing
from spikeview.ui.opened import Opened
from spikeview.ui.opening import finished, found, other_rank
from spikeview.ui.task import Task

if TYPE_CHECKING:
    from spikeview.ui.session import Session


class Opener(QObject):
    """`task` is the one that reads or diagnoses, `waiting` whether there is nothing of its run to show yet.

    `listing` is what there is to choose from in a place that holds several runs. `asked` is what was asked for of a
    log, `unnamed` the names of its columns where none of them could be guessed.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._session = session
        self.task: Task | None = None
        self.path: str | None = None
        self.waiting = False
        self.progress = ""
        self.failure: Failure | None = None
        self.listing: Listing | None = None
        self._listed: Listing | None = None
        self.asked = Asked()
        self.unnamed: tuple[str, ...] = ()

    def open(self, path: str, asked: Asked | None = None) -> None:
        """Read and diagnose a run; a later call overtakes an earlier one."""
        session = self._session
        self.cancel()
        session.follow.stop()
        self.path, self.failure, self.waiting, self.progress, self.listing = path, None, True, "", None
        self.asked, self.unnamed = asked or Asked(), ()
        wanted = session.series.wanted
        self.task = session.work.start(
            lambda tell: found(path, wanted, tell, asked), self._on_ready, self._on_failed, self._on_told
        )
        session.status_changed.emit()

    def open_rank(self, rank: int) -> None:
        """Show another rank of the run that is shown."""
        session, shown = self._session, self._session.shown
        if shown is None or shown.diagnosis.run.rank == rank:
            return
        self.cancel()
        session.follow.stop()
        wanted = session.series.wanted
        self.waiting, self.progress = True, f"Rank {rank} …"
        self.task = session.work.start(lambda tell: other_rank(shown, rank, wanted), self._on_ready, self._on_failed)
        session.status_changed.emit()

    def cancel(self) -> bool:
        """Stop reading, and go back to what was shown before; whether anything was being read."""
        if self.task is None:
            return False
        self.task.cancel()
        self.task, self.waiting = None, False
        self._session.status_changed.emit()
        return True

    def dismiss(self) -> None:
        """Back from a failure or a list to the run that was shown before, or to the beginning."""
        if self.failure is not None or self.listing is not None:
            self.failure = self.listing = None
            self._session.status_changed.emit()

    def back_to_list(self) -> None:
        """To the runs among which one was chosen last."""
        if self._listed is None:
            self._session.told.emit("No directory of runs was opened.")
            return
        self.cancel()
        self.failure, self.listing = None, self._listed
        self._session.status_changed.emit()

    def _on_told(self, what: object) -> None:
        if self.sender() is not self.task:
            return
        self.progress = str(what)
        self._session.status_changed.emit()

    def _on_ready(self, shown: Opened | Listing) -> None:
        if self.sender() is not self.task:
            return
        if not isinstance(shown, Opened):
            self.task, self.waiting, self.listing = None, False, shown
            self._listed = shown
            self._session.status_changed.emit()
            return
        session, self.task, self.waiting = self._session, None, False
        if not shown.diagnosed:
            self.task = session.work.start(
                lambda tell: finished(shown), self._on_diagnosed, self._on_failed, after_frame=True
            )
        session.show(shown)
        if self.task is not None:
            session.told.emit("Diagnosing …")

    def _on_diagnosed(self, shown: Opened) -> None:
        if self.sender() is self.task:
            self.task = None
            self._session.update(shown)
            self._session.status_changed.emit()
            found = len(shown.diagnosis.incidents)
            self._session.told.emit(f"Diagnosed: {found} incident{'' if found == 1 else 's'}.")

    def _on_failed(self, error: Exception) -> None:
        if self.sender() is self.task:
            self.task, self.waiting = None, False
            self.failure = explain(self.path or "", error)
            self.unnamed = error.names if isinstance(error, UnnamedError) else ()
            self._session.status_changed.emit()
