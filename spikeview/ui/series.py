"""The series of the panels: which are wanted, and those that nobody asked for before, built in a worker."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from spikeview.ui.panels import PANELS
from spikeview.ui.panels.plotted import Plotted
from spikeview.ui.task import Task, Tell

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from spikeview.ui.opened import Opened
    from spikeview.ui.session import Session

Built = tuple["Opened", int, str, Plotted | None]


class Series(QObject):
    """`wanted` are the ids of the panels on the screen, in their order."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._session = session
        self.wanted: tuple[str, ...] = tuple(panel.id for panel in PANELS if panel.shown)
        self._building: dict[tuple[int, str], Task] = {}
        for signal in (session.opened, session.grown):
            signal.connect(self._build)

    def want(self, panel_ids: tuple[str, ...]) -> None:
        """Have the series of these panels built, and told of by the session."""
        self.wanted = panel_ids
        self._build()

    def of(self, panel_id: str) -> Plotted | None:
        """None where the run lacks them, or where they are not built yet."""
        session = self._session
        return None if session.shown is None else session.shown.plots[session.view_index].get(panel_id)

    def _build(self) -> None:
        session, shown = self._session, self._session.shown
        if shown is None:
            return
        view = session.view_index
        for panel_id in self.wanted:
            if panel_id not in shown.plots[view] and (id(shown), panel_id) not in self._building:
                work = partial(_build, shown, view, panel_id)
                self._building[id(shown), panel_id] = session.work.start(work, self._on_built, self._on_failed)

    def _on_built(self, built: Built) -> None:
        shown, view, panel_id, series = built
        self._building.pop((id(shown), panel_id), None)
        shown.plots[view][panel_id] = series
        self._session.drawn.emit()

    def _on_failed(self, error: Exception) -> None:
        log.error("a panel's series could not be built", exc_info=error)


def _build(shown: Opened, view: int, panel_id: str, tell: Tell) -> Built:
    return shown, view, panel_id, shown.plot(panel_id, view)
