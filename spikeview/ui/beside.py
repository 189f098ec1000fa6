"""The inspected transition beside that of the run it is compared with: values, differences, incidents."""

from __future__ import annotations

from itertools import chain

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from spikeview.cells import Kind
from spikeview.format import label, number, shown
from spikeview.ui.both_incidents import BothIncidents, counted
from spikeview.ui.fonts import fixed_font
from spikeview.ui.labels import heading, muted
from spikeview.ui.near import near
from spikeview.ui.session import Session
from spikeview.ui.values import cell, step_label

TENFOLD = 10
COLUMNS = ("loss", "grad_norm", "clip_coef", "lr", "loss_scale", "update_ratio", "update_cosine")


def difference(session: Session, column: str, position: int, there: int) -> str:
    """Ours minus theirs, and as a share of theirs, from tenfold on as a multiple.

    Empty where one of them is no finite number.
    """
    overlay = session.comparison.overlay
    assert overlay is not None
    rows = (near(session.view, position), near(overlay.view, there))
    if any(view.run.kind(column)[at] != Kind.FINITE for view, at in rows):
        return ""
    ours, theirs = (float(view.run.values(column)[at]) for view, at in rows)
    if ours == theirs:
        return "same"
    share = f" ({_share(ours, theirs)})" if theirs else ""
    return f"{number(ours - theirs, signed=True, digits=3)}{share}"


def _share(ours: float, theirs: float) -> str:
    if abs(ours) >= TENFOLD * abs(theirs):
        return f"{number(ours / theirs, digits=2)} times"
    return f"{100 * (ours - theirs) / abs(theirs):+.3g} %"


class Beside(QWidget):
    """Only there while a run is compared with."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self.setAccessibleName("Compared with another run")
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 4, 0, 0)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(1)
        grid.setColumnStretch(2, 1)
        self._heading, self._counted, self._said = heading("", self), heading("", self), muted("", self)
        self._incidents = BothIncidents(session, self)
        self._counted.setContentsMargins(0, 8, 0, 2)
        grid.addWidget(self._heading, 0, 0, 1, 3)
        self._values: dict[str, tuple[QLabel, QLabel, QLabel]] = {}
        for row, column in enumerate(COLUMNS, start=1):
            name, there, apart = muted(label(column), self), QLabel(self), QLabel(self)
            for value in (there, apart):
                value.setFont(fixed_font())
                value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            there.setAccessibleName(f"{label(column)} of the other run")
            apart.setAccessibleName(f"difference of {label(column)}")
            for at, widget in enumerate((name, there, apart)):
                grid.addWidget(widget, row, at)
            self._values[column] = (name, there, apart)
        for row, part in enumerate((self._counted, self._incidents, self._said), start=len(COLUMNS) + 1):
            grid.addWidget(part, row, 0, 1, 3)
        for signal in (session.comparison.changed, session.cursor_changed, session.opened):
            signal.connect(self.show_row)
        session.comparison.changed.connect(self._show_incidents)
        self.hide()

    def show_row(self) -> None:
        session, overlay = self._session, self._session.comparison.overlay
        self.setVisible(overlay is not None)
        if overlay is None or session.shown is None or len(overlay.alignment.ours) != len(session.run):
            return
        position = session.inspected
        there = overlay.alignment.beside(position)
        name = shown(overlay.view.run.name, 40)
        for widget in chain.from_iterable(self._values.values()):
            widget.setVisible(there is not None)
        if there is None:
            self._heading.setText(f"{name}, NO ROW THERE")
            return
        # the name stays as it is written
        where = f"step {step_label(overlay.view.run, there)}, and this run minus it"
        self._heading.setText(f"{name}, {where.upper()}")
        for column, (_, value, apart) in self._values.items():
            value.setText(cell(overlay.view, column, there).text)
            apart.setText(difference(session, column, position, there))

    def _show_incidents(self) -> None:
        """Those of the two optimizers that are laid over each other; what is not diagnosed yet has none to tell of."""
        session, overlay = self._session, self._session.comparison.overlay
        if overlay is None or session.shown is None:
            return
        waiting = not overlay.said
        pairs = () if waiting and not session.incidents else overlay.incidents
        of = f" of {session.view.optimizer}" if len(session.shown.diagnosis.views) > 1 else ""
        count = f"incidents{of}: {counted(pairs)}" if pairs else f"neither run has an incident{of}"
        if waiting:
            count = f"incidents{of}: still diagnosing"
        self._counted.setText(count.upper())
        self._counted.setAccessibleName(count)
        self._incidents.show_pairs(pairs)
        self._said.setText("" if waiting else f"This run against it: {overlay.said}")
        self._said.setHidden(waiting)
