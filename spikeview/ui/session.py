"""The hub: which run, which row, which rows are visible, which incident. Views know it, and never each other."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QObject

from spikeview.importers.errors import RunError
from spikeview.rules.diagnosis import View
from spikeview.ui import visible
from spikeview.ui.elsewhere import Elsewhere
from spikeview.ui.exporting import Exporting
from spikeview.ui.follow import Follow
from spikeview.ui.near import block_of
from spikeview.ui.opened import Opened
from spikeview.ui.opener import Opener
from spikeview.ui.reference import Comparison
from spikeview.ui.same import same_incident
from spikeview.ui.series import Series
from spikeview.ui.sight import Sight
from spikeview.ui.task import Work
from spikeview.ui.theme import Theme
from spikeview.ui.values import step_label


class Session(Sight):
    """One window's state, and all that changes it."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(theme, parent)
        self.work = Work(self)
        self.series, self.opener, self.exporting = Series(self), Opener(self), Exporting(self)
        self.follow, self.comparison, self.elsewhere = Follow(self), Comparison(self), Elsewhere(self)

    # which run

    def show(self, shown: Opened) -> None:
        """Take a run that is ready, and go to its first incident."""
        self.shown = shown
        self.incident = self.hovered = None
        self.view_index = self.index_of(shown.diagnosis.incidents[0].view) if shown.diagnosis.incidents else 0
        self.cursor, self.observed = len(self.run) - 1, None
        self._see_anew()
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

    def use_theme(self, theme: Theme) -> None:
        if theme != self.theme:
            self.theme = theme
            self.theme_changed.emit()

    def close(self) -> None:
        """Leave nothing running."""
        self.follow.stop()
        self.work.close()

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
            readable = position is None or self._can_show(self.view, position)
            self.hovered = position if readable else None
            self.hover_changed.emit()

    # incidents

    def select(self, index: int) -> None:
        """Go to an incident: the transition before its first bad observation."""
        chosen = self.incidents[index]
        if not self._can_show(chosen.view, self.inspection(chosen)[0]):
            return
        if self.index_of(chosen.view) != self.view_index:
            self.choose_view(self.index_of(chosen.view))
        if self._go_to(index):
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

    def _go_to(self, index: int) -> bool:
        """Whether that took another range into sight."""
        self.incident = index
        chosen = self.incidents[index]
        self.cursor, self.observed = self.inspection(chosen)
        return self._see(*visible.around(chosen.incident, len(self.run)))

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
