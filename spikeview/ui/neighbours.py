"""The rows around the transition, in the columns of the published dump."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QRect, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from spikeview import format
from spikeview.rules.diagnosis import View
from spikeview.ui.fonts import fixed_font, scaled
from spikeview.ui.near import near
from spikeview.ui.session import Session
from spikeview.ui.values import Cell, cell, step_label

Index = QModelIndex | QPersistentModelIndex
Reader = Callable[[View, int, bool], Cell]
AROUND = 3
SIZE = 11
INSET, PADDING = 3, 6
SELECTED = 0.16
WHOLE, KEPT = 5, 2  # digits of a count that are shown; of a longer one at least the last
CLOCKS = ("attempted_n", "executed_n", "scheduled_n")


def clocks(view: View, position: int, narrow: bool = True) -> Cell:
    """`8220/8219/8220`; of long counts only the digits in which they differ, and those after."""
    view, position = near(view, position)
    run = view.run
    counts = [str(format.cell(run, name, position)["text"]) for name in CLOCKS]
    if narrow and max(map(len, counts)) > WHOLE and len({len(text) for text in counts}) == 1:
        same = next((at for at, digits in enumerate(zip(*counts, strict=True)) if len(set(digits)) > 1), len(counts[0]))
        cut = min(same, len(counts[0]) - KEPT)
        counts = ["…" + text[cut:] if at == 0 else text[cut:] for at, text in enumerate(counts)]
    executed = run.recorded("executed")[position] and not run.values("executed")[position]
    return Cell("/".join(counts), "warn" if executed and run.values("attempted")[position] else "text")


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


class Neighbours(QTableView):
    """A click on a row inspects it. It draws its cells itself: Qt asks a model eight things of each, and takes long."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self._model = NeighbourModel(session, self)
        self.setModel(self._model)
        self.setAccessibleName("Neighbouring rows")
        self.setFont(fixed_font(SIZE))
        self.setStyleSheet(f"QTableView {{ font-size: {scaled(SIZE)}px; }}")
        self.setShowGrid(False)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setMinimumSectionSize(scaled(19))
        self.verticalHeader().setDefaultSectionSize(scaled(19))
        self.horizontalHeader().setSectionsClickable(False)
        self.horizontalHeader().setFixedHeight(scaled(20))
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.horizontalHeader().setMinimumSectionSize(10)
        self.clicked.connect(self._on_clicked)

    def show_around(self, position: int) -> None:
        self._model.show_around(position)
        self.setFixedHeight(scaled(20) + scaled(19) * len(self._model.positions) + 2)
        self._share_width()

    def resizeEvent(self, event: Any) -> None:
        super().resizeEvent(event)
        self._share_width()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, model = self._session.theme, self._model
        with QPainter(self.viewport()) as painter:
            painter.setFont(fixed_font(SIZE))
            for row, (position, cells) in enumerate(zip(model.positions, model.cells, strict=True)):
                top, height = self.rowViewportPosition(row), self.rowHeight(row)
                if position == self._session.inspected:
                    area = QRect(0, top, self.viewport().width(), height)
                    painter.fillRect(area, theme.tint(self._session.tone, SELECTED))
                for column, found in enumerate(cells):
                    left = self.columnViewportPosition(column) + INSET
                    area = QRect(left, top, self.columnWidth(column), height)
                    painter.setPen(theme[found.role])
                    painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, found.text)

    def _share_width(self) -> None:
        """To every column what its text needs; what is left over, or short, is shared equally."""
        measure = self.fontMetrics()
        head = self.horizontalHeader().fontMetrics()
        needed = []
        for column, (name, _, _) in enumerate(COLUMNS):
            texts = [cells[column].text for cells in self._model.cells]
            widths = [measure.horizontalAdvance(text) for text in texts]
            needed.append(max(head.horizontalAdvance(name), *widths, 0) + PADDING)
        each = (self.viewport().width() - sum(needed)) // len(needed)
        for column, width in enumerate(needed):
            if self.columnWidth(column) != width + each:
                self.setColumnWidth(column, width + each)

    def _on_clicked(self, index: QModelIndex) -> None:
        self._session.move(self._model.positions[index.row()] - self._session.cursor)
