"""The hub: which run, which row, which rows are visible, which incident. Views know it, and never each other."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QObject, Signal

from spikeview.importers.errors import RunError
from spikeview.rules.diagnosis import Diagnosed, View
from spikeview.run import Run
from spikeview.ui import visible
from spikeview.ui.elsewhere import Elsewhere
from spikeview.ui.exporting import Exporting
from spikeview.ui.follow import Follow
from spikeview.ui.history import History
from spikeview.ui.near import block_of
from spikeview.ui.opened import Opened, Rows
from spikeview.ui.opener import Opener
from spikeview.ui.plot.bands import Bands, bands_of
from spikeview.ui.reference import Comparison
from spikeview.ui.same import same_incident
from spikeview.ui.series import Series
from spikeview.ui.task import Work
from spikeview.ui.theme import Theme
from spikeview.ui.values import severity_role, step_label


class Session(QObject):
    """One window's state.

    `cursor` is the position of the transition being inspected, -1 before the first; `observed` is the row whose
    loss it led to, None after the last. `incident` indexes the diagnosis' incidents.

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
        self.history = History()
        self.work = Work(self)
        self.series, self.opener, self.exporting = Series(self), Opener(self), Exporting(self)
        self.follow, self.comparison, self.elsewhere = Follow(self), Comparison(self), Elsewhere(self)

    # what is shown

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
        return chosen is not None and (self.cursor, self.observed) == self._inspection(chosen)

    # which run

    def show(self, shown: Opened) -> None:
        """Take a run that is ready, and go to its first incident."""
        self.shown = shown
        self.incident = self.hovered = None
        self.view_index = self._index_of(shown.diagnosis.incidents[0].view) if shown.diagnosis.incidents else 0
        self.cursor, self.observed = len(self.run) - 1, None
        self.range = visible.whole(len(self.run))
        self.history.clear()
        self.history.visit(self.range, "")
        if self.incidents:
            self._go_to(0)
        self.opened.emit()
        self.status_changed.emit()

    def update(self, shown: Opened) -> None:
        """The same run with more rows, or with its diagnosis: everything stays where the user is.

        Where the end was in sight the new rows are; where nothing was touched yet, the first incident is gone to.
        """
        before, rows, last = self.shown, len(self.run), len(self.run) - 1
        untouched = not self.incidents and self.cursor == last and self.range == visible.whole(rows)
        at_end, chosen = self.cursor == last, self.selected
        self.shown = shown
        self.incident = None if chosen is None else same_incident(chosen, self.incidents)
        more = len(self.run) - rows
        self.cursor += more if at_end else 0
        self.observed = visible.following(self.cursor, len(self.run))
        first_diagnosis = before is not None and not before.diagnosed and shown.diagnosed
        self.range = visible.grown(self.range, rows, len(self.run))
        self.grown.emit()
        if first_diagnosis and untouched and self.incidents:
            self.select(0)

    def choose_view(self, index: int) -> None:
        """Show another optimizer of the run."""
        if self.shown is None or index == self.view_index:
            return
        self.view_index, self.incident, self.hovered = index, None, None
        self.cursor = min(self.cursor, len(self.run) - 1)
        self.observed = visible.following(self.cursor, len(self.run))
        self.range = visible.whole(len(self.run))
        self.opened.emit()

    # moving

    def move(self, rows: int) -> None:
        """Move the inspected transition, and keep it in sight."""
        if self.shown is not None:
            self._inspect(self.cursor + rows)

    def inspect_row(self, position: int) -> None:
        """Inspect the transition that led to a row: t-1 -> t."""
        self._inspect(position - 1)

    def to_end(self, first: bool) -> None:
        if self.shown is not None:
            self._inspect(0 if first else len(self.run) - 1)

    def jump(self, step: int) -> None:
        """Inspect the transition at a step, or the nearest one there is."""
        if self.shown is None:
            return
        position, exact = visible.nearest_step(self.rows.steps, step)
        self._inspect(position)
        if not exact:
            self.told.emit(f"No step {step:,} in this run; the nearest is {step_label(self.run, position)}.")

    def inspect_numbered(self, number: int) -> None:
        """Inspect the transition of the row with a number."""
        found = np.flatnonzero(self.run.values("row") == number) if "row" in self.run else np.array([number])
        if len(found):
            self._inspect(int(found[0]))

    def hover(self, position: int | None) -> None:
        if position != self.hovered:
            self.hovered = position
            self.hover_changed.emit()

    def show_range(self, first: float, last: float, gesture: str = "") -> None:
        """Show the rows from first to last, as near to it as the run allows; `gesture` joins what is one step back."""
        if self.shown is None:
            return
        allowed = visible.within(first, last, len(self.run))
        if allowed != self.range:
            self.range = allowed
            self.history.visit(allowed, gesture)
            self.range_changed.emit()

    def show_all(self) -> None:
        if self.shown is not None:
            self.show_range(*visible.whole(len(self.run)))

    def go_back(self, by: int) -> None:
        """To the range that was in sight before (-1), or forward to the one after (1)."""
        found = self.history.go(by)
        if found is None:
            self.told.emit("No earlier zoom." if by < 0 else "No later zoom.")
        elif self.shown is not None:
            self.range = visible.within(*found, len(self.run))
            self.range_changed.emit()

    # incidents

    def select(self, index: int) -> None:
        """Go to an incident: the transition before its first bad observation."""
        chosen = self.incidents[index]
        if not self._can_show(chosen.view, self._inspection(chosen)[0]):
            return
        if self._index_of(chosen.view) != self.view_index:
            self.choose_view(self._index_of(chosen.view))
        before = self.range
        self._go_to(index)
        if self.range != before:
            self.range_changed.emit()
        self.incident_changed.emit()
        self.cursor_changed.emit()

    def step_incident(self, by: int) -> None:
        """The next (1) or previous (-1) incident; at the ends back to that one, from wherever the cursor has gone."""
        if not self.incidents:
            waiting = self.shown is not None and not self.shown.diagnosed
            self.told.emit("Still diagnosing." if waiting else "No incident in this run.")
            return
        index = 0 if self.incident is None else self.incident + by
        self.select(min(max(index, 0), len(self.incidents) - 1))
        if not 0 <= index < len(self.incidents):
            self.told.emit("This is the last incident." if by > 0 else "This is the first incident.")

    def use_theme(self, theme: Theme) -> None:
        if theme != self.theme:
            self.theme = theme
            self.theme_changed.emit()

    def close(self) -> None:
        """Leave nothing running."""
        self.follow.stop()
        self.work.close()

    def _go_to(self, index: int) -> None:
        self.incident = index
        chosen = self.incidents[index]
        self.cursor, self.observed = self._inspection(chosen)
        wanted = visible.within(*visible.around(chosen.incident, len(self.run)), len(self.run))
        if wanted != self.range:
            self.range = wanted
            self.history.visit(wanted, "")

    def _inspection(self, chosen: Diagnosed) -> tuple[int, int | None]:
        """Cursor and observed row for an incident; an update observation shows in the next loss."""
        first = chosen.incident.first_bad.position
        if chosen.transition is None:
            return first - 1, first
        following = visible.following(chosen.transition, len(self.run))
        return chosen.transition, first if first > chosen.transition else following

    def _can_show(self, view: View, cursor: int) -> bool:
        """Whether the row can be read; where it is gone from the disk that is told, and everything stays."""
        try:
            block_of(view, max(cursor, 0))
        except RunError as error:
            self.told.emit(f"Not shown: {error}")
            return False
        return True

    def _inspect(self, cursor: int) -> None:
        cursor = min(max(cursor, -1), len(self.run) - 1)
        if not self._can_show(self.view, cursor):
            return
        self.cursor = cursor
        self.observed = visible.following(self.cursor, len(self.run))
        self.show_range(*visible.containing(self.range, self.inspected, len(self.run)), gesture="cursor")
        self.cursor_changed.emit()

    def _index_of(self, view: View) -> int:
        assert self.shown is not None
        names = [each.optimizer for each in self.shown.diagnosis.views]
        return names.index(view.optimizer)
