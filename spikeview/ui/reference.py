"""Comparing with another run: it is read in a worker, laid over this one by a clock, and drawn behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QObject, Signal

from spikeview.format import capital
from spikeview.rules.diagnosis import Diagnosed, Diagnosis, View
from spikeview.run import Floats
from spikeview.ui.alignment import Alignment, Clock, aligned
from spikeview.ui.failure import explain
from spikeview.ui.opened import Opened
from spikeview.ui.opening import to_compare_with
from spikeview.ui.panels import PANELS
from spikeview.ui.panels.panel import Cells
from spikeview.ui.panels.plotted import Curves, Plotted, plotted
from spikeview.ui.side_by_side import Pair, paired
from spikeview.ui.task import Task, Tell

if TYPE_CHECKING:
    from spikeview.ui.session import Session


@dataclass(frozen=True, eq=False)
class Overlay:
    """The other run as it lies over one view of this one: its view, the alignment, its curves and cells by panel id.

    Cells stand at the positions of this run's rows, under its names. `skipped` is where the other run's skipped rows
    stand among those, rising; of those that stand beside none it has nothing.
    `incidents` are those of the two views, side by side.
    `said` is what the comparison of the two amounts to, empty until both are diagnosed.
    """

    view: View
    alignment: Alignment
    curves: Mapping[str, Curves]
    cells: Mapping[str, Cells]
    skipped: Floats
    incidents: tuple[Pair, ...]
    said: str


class Comparison(QObject):
    """`other` is the run that is compared with, `overlay` how it lies over what is shown, `clock` what aligns them."""

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._session = session
        self.other: Opened | None = None
        self.overlay: Overlay | None = None
        self.clock: Clock = "step"
        self._reading: Task | None = None
        self._laying: Task | None = None
        for signal in (session.opened, session.grown, session.drawn):
            signal.connect(self._lay)

    def open(self, path: str) -> None:
        """Read the run to compare with; a later call overtakes an earlier one."""
        self._cancel()
        self._session.told.emit(f"Reading {path} …")
        self._path = path
        self._reading = self._session.work.start(
            lambda tell: to_compare_with(path, tell), self._on_read, self._on_failed
        )

    def clear(self) -> None:
        """Compare with nothing."""
        if not self._has_other():
            return
        self._cancel()
        self.other = self.overlay = None
        self.changed.emit()

    def use_clock(self, clock: Clock) -> None:
        if self._has_other():
            self.clock = clock
            self._lay()

    def _has_other(self) -> bool:
        """Whether there is a run to compare with, or one is being read; where there is none that is told."""
        has = self.other is not None or self._reading is not None
        if not has:
            self._session.told.emit("No run is compared with; C chooses one.")
        return has

    def _cancel(self) -> None:
        for task in (self._reading, self._laying):
            if task is not None:
                task.cancel()
        self._reading = self._laying = None

    def _on_read(self, other: Opened) -> None:
        if self.sender() is self._reading:
            self._reading, self.other = None, other
            self._session.told.emit(f"Compared with {other.diagnosis.run.name}.")
            self._lay()

    def _on_failed(self, error: Exception) -> None:
        if self.sender() is self._reading:
            self._reading = None
            failure = explain(self._path, error)
            self._session.told.emit(f"Not compared: {'. '.join(filter(None, (failure.reason, failure.advice)))}")

    def _lay(self) -> None:
        session = self._session
        if self.other is None or session.shown is None:
            return
        if self._laying is not None:
            self._laying.cancel()
        drawn = {panel_id: session.series.of(panel_id) for panel_id in session.series.wanted}
        before = {} if self.overlay is None else self.overlay.curves
        work = partial(_laid, session.shown, session.view_index, self.other, self.clock, drawn, before)
        self._laying = session.work.start(work, self._on_laid, self._on_failed)

    def _on_laid(self, overlay: Overlay) -> None:
        if self.sender() is self._laying:
            self._laying, self.overlay = None, overlay
            self.changed.emit()


def _laid(
    shown: Opened,
    index: int,
    other: Opened,
    clock: Clock,
    drawn: Mapping[str, Plotted | None],
    before: Mapping[str, Curves],
    tell: Tell,
) -> Overlay:
    """The other run's view of the same optimizer, or its first, with the curves of the panels that are drawn."""
    views, view = other.diagnosis.views, shown.diagnosis.views[index]
    theirs = next((each for each in views if each.optimizer == view.optimizer), views[0])
    alignment = aligned(view.run, theirs.run, clock)
    curves, cells = {}, {}
    for panel in PANELS:
        ours = drawn.get(panel.id)
        if ours is None:
            continue
        log = ours.log if isinstance(ours, Curves) else None
        made = plotted(panel, theirs.run, before.get(panel.id), log)
        if isinstance(made, Curves):
            curves[panel.id] = made
        elif isinstance(made, Cells) and isinstance(ours, Cells):
            cells[panel.id] = _beside(made, ours.names, alignment)
    skipped = alignment.positions(other.rows[views.index(theirs)].skipped)
    incidents = paired(_of(view, shown.diagnosis), _of(theirs, other.diagnosis), alignment)
    return Overlay(theirs, alignment, curves, cells, skipped[~np.isnan(skipped)], incidents, _said(shown, other))


def _of(view: View, diagnosis: Diagnosis) -> list[Diagnosed]:
    return [each for each in diagnosis.incidents if each.view.optimizer == view.optimizer]


def _beside(theirs: Cells, names: Sequence[str], alignment: Alignment) -> Cells:
    """Their cells in the order of our names, on our rows; what we have no name or no row for is left out."""
    positions = alignment.positions(theirs.positions)
    held = ~np.isnan(positions)
    values = np.full((len(names), int(held.sum())), np.nan)
    known = {name: at for at, name in enumerate(theirs.names)}
    for line, name in enumerate(names):
        if name in known:
            values[line] = theirs.values[known[name]][held]
    return Cells(tuple(names), np.round(positions[held]).astype(np.int64), values)


def _said(shown: Opened, other: Opened) -> str:
    if not (shown.diagnosed and other.diagnosed):
        return ""
    from spikeview.rules.comparison import compare, conclude  # which a window without a second run does not need

    found = conclude(compare(other.diagnosis, shown.diagnosis))
    return ". ".join((found.answer.replace("_", " "), *map(capital, (found.why, *found.notes)))) + "."
