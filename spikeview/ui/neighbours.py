"""The rows around the transition, in the columns of the published dump."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QWidget

from spikeview import format
from spikeview.rules.diagnosis import View
from spikeview.ui.near import near
from spikeview.ui.session import Session
from spikeview.ui.values import Cell, cell, step_label

Index = QModelIndex | QPersistentModelIndex
Reader = Callable[[View, int, bool], Cell]
AROUND = 3
WHOLE, KEPT = 5, 2  # digits of a count that are all shown; of a longer one at least the last
CLOCKS = ("attempted_n", "executed_n", "scheduled_n")


def clocks(view: View, position: int, narrow: bool = True) -> Cell:
    """`8220/8219/8220`; of long counts, where it is to be narrow, only the last digits."""
    view, position = near(view, position)
    run = view.run
    counts = [str(format.cell(run, name, position)["text"]) for name in CLOCKS]
    executed = run.recorded("executed")[position] and not run.values("executed")[position]
    role = "warn" if executed and run.values("attempted")[position] else "text"
    return Cell("/".join(shortened(counts) if narrow else counts), role)


def shortened(counts: Sequence[str]) -> list[str]:
    """`…021/019/021`: of long counts as many of the last digits as tell them apart, and the one before those."""
    known = [int(text) for text in counts if text.isdigit()]
    if not known or max(known) < 10**WHOLE:
        return list(counts)
    kept = max(KEPT, len(str(max(known) - min(known))) + 1)
    kept += len({each // 10**kept for each in known}) > 1
    short = [text[-kept:] if text.isdigit() else text for text in counts]
    return [f"…{short[0]}", *short[1:]]


def step(view: View, position: int, narrow: bool = True) -> Cell:
    """Without thousands apart, as in a dump."""
    return Cell(step_label(view.run, position).replace(",", ""))


def column(name: str) -> Reader:
    """A reader of one column."""
    return lambda view, position, narrow: cell(view, name, position, narrow)


COLUMNS: tuple[tuple[str, str, Reader], ...] = (
    # head, hint, reader
    ("step", "the loop's own step", step),
    ("loss", "raw loss", column("loss")),
    ("norm", "gradient norm before clipping", column("grad_norm")),
    ("coef", "clip coefficient", column("clip_coef")),
    ("att/exe/sch", "attempted, executed and scheduled so far", clocks),
    ("ratio", "update norm over parameter norm", column("update_ratio")),
    ("cos", "cosine of the update with the negative gradient", column("update_cosine")),
)


def around(position: int, rows: int) -> list[int]:
    """The positions of a row and of AROUND on either side; near the ends of the run as many that are there."""
    first = max(0, min(position - AROUND, rows - 2 * AROUND - 1))
    return list(range(first, min(rows, first + 2 * AROUND + 1)))


class NeighbourModel(QAbstractTableModel):
    """Three rows on either side of one; near the ends of the run the rows that are there."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self.positions: list[int] = []
        self.cells: list[list[Cell]] = []
        self._known: dict[int, list[Cell]] = {}
        for signal in (session.opened, session.grown):
            signal.connect(self._forget)

    def show_around(self, position: int) -> None:
        positions = around(position, len(self._session.run))
        same = len(positions) == len(self.positions)
        if not same:
            self.beginResetModel()
        self.positions = positions
        for at in positions:
            if at not in self._known:
                self._known[at] = [read(self._session.view, at, True) for _, _, read in COLUMNS]
        self._known = {at: self._known[at] for at in positions}
        self.cells = [self._known[at] for at in positions]
        if same:
            self.dataChanged.emit(self.index(0, 0), self.index(len(positions) - 1, len(COLUMNS) - 1))
        else:
            self.endResetModel()

    def _forget(self) -> None:
        self._known = {}

    def rowCount(self, parent: Index = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(self.positions)

    def columnCount(self, parent: Index = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section][0]
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.ToolTipRole:
            return COLUMNS[section][1]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role == Qt.ItemDataRole.DisplayRole:
            return self.cells[index.row()][index.column()].text
        if role == Qt.ItemDataRole.ToolTipRole:
            found = COLUMNS[index.column()][2](self._session.view, self.positions[index.row()], False)
            return ", ".join(part for part in (found.text, found.away, found.band and f"baseline {found.band}") if part)
        return None
