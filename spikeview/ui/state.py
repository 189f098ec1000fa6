"""What a window shows and where in it the user is, as its views ask for it, and what tells that it changed."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QObject, Signal

from spikeview.rules.diagnosis import Diagnosed, View
from spikeview.run import Run
from spikeview.ui import visible
from spikeview.ui.opened import Opened, Rows
from spikeview.ui.plot.bands import Bands, bands_of
from spikeview.ui.theme import Theme
from spikeview.ui.values import severity_role


class State(QObject):
    """`cursor` is the position of the transition being inspected, -1 before the first.

    `observed` is the row whose loss it led to, None after the last. `incident` indexes the diagnosis' incidents.

    `opened` tells of another run or view, `grown` of more rows or another diagnosis of the same, `drawn` of series
    that are ready or were dropped.
    """

    opened = Signal()
    grown = Signal()
    drawn = Signal()
    status_changed = Signal()
    cursor_changed = Signal()
    hover_changed = Signal()
    range_changed = Signal()
    incident_changed = Signal()
    theme_changed = Signal()
    told = Signal(str)

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.theme = theme
        self.shown: Opened | None = None
        self.view_index = 0
        self.cursor = 0
        self.observed: int | None = None
        self.hovered: int | None = None
        self.range = (0.0, 1.0)
        self.incident: int | None = None
        self._bands: tuple[tuple[Diagnosed, ...], str, Bands] | None = None

    @property
    def view(self) -> View:
        assert self.shown is not None
        return self.shown.diagnosis.views[self.view_index]

    @property
    def run(self) -> Run:
        """The rows of the shown optimizer."""
        return self.view.run

    @property
    def rows(self) -> Rows:
        assert self.shown is not None
        return self.shown.rows[self.view_index]

    @property
    def incidents(self) -> tuple[Diagnosed, ...]:
        return () if self.shown is None else self.shown.diagnosis.incidents

    @property
    def bands(self) -> Bands:
        """The incidents of the shown view, as they are drawn; made once for each diagnosis."""
        incidents, optimizer = self.incidents, self.view.optimizer
        if self._bands is None or self._bands[0] is not incidents or self._bands[1] != optimizer:
            self._bands = (incidents, optimizer, bands_of(incidents, optimizer))
        return self._bands[2]

    @property
    def selected(self) -> Diagnosed | None:
        return None if self.incident is None else self.incidents[self.incident]

    @property
    def inspected(self) -> int:
        """The row whose values are shown: the transition, or the first row where there is none before it."""
        return max(self.cursor, 0)

    @property
    def tone(self) -> str:
        """The role of the colour that goes with the cursor: the incident's where it stands at one."""
        return severity_role(self.selected) if self.selected is not None and self.at_incident else "accent"

    @property
    def at_incident(self) -> bool:
        """Whether the cursor is where the selected incident put it."""
        chosen = self.selected
        return chosen is not None and (self.cursor, self.observed) == self.inspection(chosen)

    def inspection(self, chosen: Diagnosed) -> tuple[int, int | None]:
        """Cursor and observed row for an incident; an update observation shows in the next loss."""
        first = chosen.incident.first_bad.position
        if chosen.transition is None:
            return first - 1, first
        following = visible.following(chosen.transition, len(self.run))
        return chosen.transition, first if first > chosen.transition else following

    def skips(self, diagnosed: Diagnosed) -> int:
        """In how many rows of an incident a step was due and did not execute, but for a skip that it begins with."""
        assert self.shown is not None
        skipped, first = self.shown.rows[self.index_of(diagnosed.view)].skipped, diagnosed.incident.first_bad
        after = first.position + (first.reason == "skipped")
        begin, end = np.searchsorted(skipped, [after, diagnosed.incident.last + 1])
        return int(end - begin)

    def index_of(self, view: View) -> int:
        """Which of the views of the run is that of the same optimizer."""
        assert self.shown is not None
        names = [each.optimizer for each in self.shown.diagnosis.views]
        return names.index(view.optimizer)
