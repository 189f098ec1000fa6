"""The hub: which run, which row, which rows are visible, which incident. Views know it, and never each other."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from spikeview.report.export import write_report
from spikeview.rules.diagnosis import Diagnosed, View
from spikeview.run import Run
from spikeview.ui import visible
from spikeview.ui.failure import Failure, explain
from spikeview.ui.opening import Opened, prepare
from spikeview.ui.task import Task
from spikeview.ui.theme import Theme
from spikeview.ui.values import severity_role, step_label

log = logging.getLogger(__name__)


class Session(QObject):
    """One window's state.

    `cursor` is the position of the transition being inspected, -1 before the first; `observed` is the row whose
    loss it led to, None after the last. `incident` indexes the diagnosis' incidents.
    """

    opened = Signal()
    status_changed = Signal()
    cursor_changed = Signal()
    hover_changed = Signal()
    range_changed = Signal()
    incident_changed = Signal()
    theme_changed = Signal()
    told = Signal(str)
    exported = Signal(str)

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
        self.failure: Failure | None = None
        self.opening: Task | None = None
        self.exporting: Task | None = None
        self.path: str | None = None

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
    def incidents(self) -> tuple[Diagnosed, ...]:
        return () if self.shown is None else self.shown.diagnosis.incidents

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

    # opening

    def open(self, path: str) -> None:
        """Read and diagnose a run in a worker; a later call overtakes an earlier one."""
        self.path, self.failure = path, None
        self.opening = self._start(lambda: prepare(path), self._on_opened, self._on_open_failed)
        self.status_changed.emit()

    def show(self, shown: Opened) -> None:
        """Take a run that is ready, and go to its first incident."""
        self.shown, self.failure, self.opening = shown, None, None
        self.incident = self.hovered = None
        self.view_index = self._index_of(shown.diagnosis.incidents[0].view) if shown.diagnosis.incidents else 0
        self.cursor, self.observed = len(self.run) - 1, None
        self.range = visible.whole(len(self.run))
        self.opened.emit()
        self.status_changed.emit()
        if self.incidents:
            self.select(0)

    def dismiss(self) -> None:
        """Back from a failure to the run that was shown before."""
        if self.failure is not None and self.shown is not None:
            self.failure = None
            self.status_changed.emit()

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
        position, exact = visible.nearest_step(self.run, step)
        self._inspect(position)
        if not exact:
            self.told.emit(f"No step {step:,} in this run; the nearest is {step_label(self.run, position)}.")

    def hover(self, position: int | None) -> None:
        if position != self.hovered:
            self.hovered = position
            self.hover_changed.emit()

    def show_range(self, first: float, last: float) -> None:
        """Show the rows from first to last, as near to it as the run allows."""
        if self.shown is None:
            return
        allowed = visible.within(first, last, len(self.run))
        if allowed != self.range:
            self.range = allowed
            self.range_changed.emit()

    def show_all(self) -> None:
        if self.shown is not None:
            self.show_range(*visible.whole(len(self.run)))

    # incidents

    def select(self, index: int) -> None:
        """Go to an incident: the transition before its first bad observation."""
        chosen = self.incidents[index]
        if self._index_of(chosen.view) != self.view_index:
            self.choose_view(self._index_of(chosen.view))
        self.incident = index
        self.cursor, self.observed = self._inspection(chosen)
        self.show_range(*visible.around(chosen.incident, len(self.run)))
        self.incident_changed.emit()
        self.cursor_changed.emit()

    def step_incident(self, by: int) -> None:
        """The next (1) or previous (-1) incident; at the ends back to that one, from wherever the cursor has gone."""
        if not self.incidents:
            self.told.emit("No incident in this run.")
            return
        index = 0 if self.incident is None else self.incident + by
        self.select(min(max(index, 0), len(self.incidents) - 1))
        if not 0 <= index < len(self.incidents):
            self.told.emit("This is the last incident." if by > 0 else "This is the first incident.")

    def export(self, destination: Path) -> None:
        """Write the report of the selected incident in a worker."""
        if self.shown is None:
            return
        diagnosis, incident = self.shown.diagnosis, self.incident
        self.told.emit(f"Writing {destination.name} …")
        self.exporting = self._start(
            lambda: write_report(diagnosis, None if incident is None else incident + 1, destination),
            self._on_exported,
            self._on_export_failed,
        )

    def use_theme(self, theme: Theme) -> None:
        if theme != self.theme:
            self.theme = theme
            self.theme_changed.emit()

    def close(self) -> None:
        """Wait for the workers, so that no thread outlives the window."""
        for task in self.findChildren(Task):
            task.wait()

    def _start(self, work: Callable[[], object], done: Callable[..., None], failed: Callable[..., None]) -> Task:
        task = Task(work, self)
        task.succeeded.connect(done)
        task.failed.connect(failed)
        task.finished.connect(task.deleteLater)
        task.start()
        return task

    def _on_opened(self, shown: Opened) -> None:
        if self.sender() is self.opening:
            self.show(shown)

    def _on_open_failed(self, error: Exception) -> None:
        if self.sender() is self.opening:
            self.opening, self.failure = None, explain(self.path or "", error)
            self.status_changed.emit()

    def _on_exported(self, written: Path) -> None:
        self.exporting = None
        self.told.emit(f"Report written: {written}")
        self.exported.emit(str(written))

    def _on_export_failed(self, error: Exception) -> None:
        self.exporting = None
        log.error("the report was not written", exc_info=error)
        self.told.emit(f"The report was not written: {error}")

    def _inspection(self, chosen: Diagnosed) -> tuple[int, int | None]:
        """Cursor and observed row for an incident; an update observation shows in the next loss."""
        first = chosen.incident.first_bad.position
        if chosen.transition is None:
            return first - 1, first
        following = visible.following(chosen.transition, len(chosen.view.run))
        return chosen.transition, first if first > chosen.transition else following

    def _inspect(self, cursor: int) -> None:
        self.cursor = min(max(cursor, -1), len(self.run) - 1)
        self.observed = visible.following(self.cursor, len(self.run))
        self.show_range(*visible.containing(self.range, self.inspected, len(self.run)))
        self.cursor_changed.emit()

    def _index_of(self, view: View) -> int:
        assert self.shown is not None
        names = [each.optimizer for each in self.shown.diagnosis.views]
        return names.index(view.optimizer)
