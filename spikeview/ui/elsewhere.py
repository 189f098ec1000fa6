"""What the other ranks of a training saw: their incidents, diagnosed together in a worker."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal

from spikeview.ranks import Ranks
from spikeview.rules.across_ranks import diagnose_ranks
from spikeview.rules.diagnosis import Diagnosed, Diagnosis
from spikeview.ui.ranked import RankedRun
from spikeview.ui.task import Task, Tell
from spikeview.ui.values import whole_number

if TYPE_CHECKING:
    from spikeview.ui.session import Session


@dataclass(frozen=True)
class _Aim:
    """Where to go on a rank: the row of a number, or the incident that begins there."""

    rank: int
    row: int
    at_incident: bool


class Elsewhere(QObject):
    """`found` are the incidents that another rank saw first, in order; their `ranks` are all that saw them."""

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._session = session
        self._ranks: Ranks | None = None
        self._all: tuple[Diagnosed, ...] = ()
        self._task: Task | None = None
        self._aim: _Aim | None = None
        session.opened.connect(self._look, Qt.ConnectionType.QueuedConnection)

    @property
    def found(self) -> tuple[Diagnosed, ...]:
        shown = self._session.shown
        rank = None if shown is None else shown.diagnosis.run.rank
        return tuple(each for each in self._all if each.view.run.rank != rank)

    def go_to(self, index: int) -> None:
        """Show the rank that saw an incident first, and the incident."""
        chosen = self.found[index]
        row = _row(chosen)
        if row is not None:
            self._go(_Aim(chosen.view.run.rank, row, at_incident=True))

    def go_to_row(self, rank: int, row: int) -> None:
        """Show a rank at the row of a number."""
        self._go(_Aim(rank, row, at_incident=False))

    def _go(self, aim: _Aim) -> None:
        shown = self._session.shown
        if shown is not None and shown.diagnosis.run.rank == aim.rank:
            self._arrive(aim)
            return
        self._aim = aim
        self._session.opener.open_rank(aim.rank)

    def _look(self) -> None:
        shown = self._session.shown
        run = None if shown is None else shown.diagnosis.run
        ranks = run.ranks if isinstance(run, RankedRun) else None
        if self._aim is not None and run is not None and run.rank == self._aim.rank:
            self._arrive(self._aim)
        self._aim = None
        if ranks is not None and ranks is self._ranks:
            self.changed.emit()
            return
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._ranks, self._all = ranks, ()
        self.changed.emit()
        if ranks is not None:
            work = partial(_diagnosed, ranks)
            self._task = self._session.work.start(work, self._on_found, self._on_failed)

    def _arrive(self, aim: _Aim) -> None:
        for index, each in enumerate(self._session.incidents if aim.at_incident else ()):
            if _row(each) == aim.row:
                self._session.select(index)
                return
        self._session.inspect_numbered(aim.row)

    def _on_found(self, diagnosis: Diagnosis) -> None:
        if self.sender() is self._task:
            self._task, self._all = None, diagnosis.incidents
            self.changed.emit()

    def _on_failed(self, error: Exception) -> None:
        if self.sender() is self._task:
            self._task = None
            self._session.told.emit(f"The other ranks were not diagnosed: {error}")


def _row(diagnosed: Diagnosed) -> int | None:
    return whole_number(diagnosed.view.run, "row", diagnosed.incident.first_bad.position)


def _diagnosed(ranks: Ranks, tell: Tell) -> Diagnosis:
    return diagnose_ranks(ranks)
