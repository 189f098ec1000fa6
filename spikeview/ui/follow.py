"""Following a live run: its new rows as they come, and a word when an incident begins."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from spikeview.rules.diagnosis import Diagnosed, Diagnosis
from spikeview.ui.opened import Opened
from spikeview.ui.opening import diagnosed_among_ranks, refreshed, with_diagnosis
from spikeview.ui.same import begun
from spikeview.ui.task import Task, Tell
from spikeview.ui.values import step_label

if TYPE_CHECKING:
    from spikeview.ui.session import Session

EVERY_MS = 400


class Follow(QObject):
    """Reads what is new every EVERY_MS, in a worker; of a long run the next diagnosis begins when the last is done."""

    changed = Signal()
    announced = Signal(str)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._session = session
        self._timer = QTimer(self)
        self._timer.setInterval(EVERY_MS)
        self._timer.timeout.connect(self._look)
        self._reading: Task | None = None
        self._diagnosing: Task | None = None

    @property
    def on(self) -> bool:
        return self._timer.isActive()

    def toggle(self) -> None:
        if self.on:
            self.stop()
            self._session.told.emit("No longer following.")
        else:
            self.start()

    def start(self) -> None:
        shown = self._session.shown
        if shown is None:
            return
        if shown.diagnosis.run.source is None:
            self._session.told.emit("This cannot be followed: only the directory of a run can.")
            return
        self._timer.start()
        ended = bool(shown.diagnosis.run.manifest.get("closed"))
        self._session.told.emit("Following; this run was closed, and may be resumed." if ended else "Following.")
        self.changed.emit()

    def stop(self) -> None:
        was = self.on
        self._timer.stop()
        for task in (self._reading, self._diagnosing):
            if task is not None:
                task.cancel()
        self._reading = self._diagnosing = None
        if was:
            self.changed.emit()

    def _look(self) -> None:
        session, shown = self._session, self._session.shown
        if self._reading is None and shown is not None and session.opener.task is None:
            work = partial(_refreshed, shown, session.series.wanted)
            self._reading = session.work.start(work, self._on_read, self._on_failed)

    def _on_read(self, newer: Opened) -> None:
        if self.sender() is not self._reading:
            return
        self._reading = None
        shown = self._session.shown
        if shown is not None and newer is not shown:
            if newer.diagnosis.run.follows(shown.diagnosis.run):
                self._take(newer)
            else:
                self._begin_anew(newer)
        if not newer.diagnosed and self._diagnosing is None:
            work = partial(_diagnosed, newer)
            self._diagnosing = self._session.work.start(work, self._on_diagnosed, self._on_failed)

    def _on_diagnosed(self, diagnosis: Diagnosis) -> None:
        if self.sender() is self._diagnosing and self._session.shown is not None:
            self._diagnosing = None
            self._take(with_diagnosis(self._session.shown, diagnosis))

    def _begin_anew(self, newer: Opened) -> None:
        """Rows that were shown are gone: no position or diagnosis of them holds for what is there now."""
        if self._diagnosing is not None:
            self._diagnosing.cancel()
            self._diagnosing = None
        self._session.show(newer)
        self._session.told.emit("What was shown is not there any more; this is what is.")

    def _take(self, newer: Opened) -> None:
        before = self._session.incidents
        self._session.update(newer)
        new = begun(self._session.incidents, before)
        if new:
            where = step_label(new[-1].view.run, new[-1].incident.first_bad.position)
            several = f" and {len(new) - 1} more" if len(new) > 1 else ""
            self.announced.emit(f"New incident at step {where}{several}. {self._way_to(new[-1])}")

    def _way_to(self, diagnosed: Diagnosed) -> str:
        incidents, chosen = self._session.incidents, self._session.incident
        at = incidents.index(diagnosed)
        if at == (0 if chosen is None else chosen + 1):
            return "Press N to go on to it."
        return (
            f"It is the last of {len(incidents)}."
            if at + 1 == len(incidents)
            else f"It is number {at + 1} in the list."
        )

    def _on_failed(self, error: Exception) -> None:
        self.stop()
        self._session.told.emit(f"No longer following: {error}")


def _refreshed(shown: Opened, wanted: tuple[str, ...], tell: Tell) -> Opened:
    return refreshed(shown, wanted)


def _diagnosed(shown: Opened, tell: Tell) -> Diagnosis:
    return diagnosed_among_ranks(shown.diagnosis.run, shown.diagnosis)
