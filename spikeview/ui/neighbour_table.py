"""The neighbours on the screen: no number of them is ever cut."""

from __future__ import annotations

import math
from typing import Any

from PySide6.QtCore import QModelIndex, QRect, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from spikeview.ui.fonts import advance, fixed_font, interface_font, scaled
from spikeview.ui.neighbours import COLUMNS, NeighbourModel
from spikeview.ui.session import Session

SIZE = 11
INSET, APART = 3, 5
LINE, HEAD = 19, 20
SELECTED = 0.16


class Neighbours(QTableView):
    """A click on a row inspects it. It draws its cells itself: Qt asks a model eight things of each, and takes long.

    Where the widest texts do not fit beside each other the table scrolls sideways, by whole columns. A number
    is never cut: of a column that is not wholly in sight dots are shown.
    """

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
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerItem)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setMinimumSectionSize(scaled(LINE))
        self.verticalHeader().setDefaultSectionSize(scaled(LINE))
        self.horizontalHeader().setSectionsClickable(False)
        self.horizontalHeader().setFixedHeight(scaled(HEAD))
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.horizontalHeader().setMinimumSectionSize(10)
        self.clicked.connect(self._on_clicked)
        self._widest = [0.0] * len(COLUMNS)
        for signal in (session.opened, session.incident_changed):
            signal.connect(self._forget)

    def show_around(self, position: int) -> None:
        self._model.show_around(position)
        head = interface_font(SIZE)
        for column, (name, _, _) in enumerate(COLUMNS):
            texts = [advance(fixed_font(SIZE), cells[column].text) for cells in self._model.cells]
            self._widest[column] = max(self._widest[column], advance(head, name), *texts)
        self._share_width()

    def resizeEvent(self, event: Any) -> None:
        super().resizeEvent(event)
        self._share_width()

    def _forget(self) -> None:
        """Elsewhere in a run texts are as wide as they are there."""
        self._widest = [0.0] * len(COLUMNS)

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
                    whole = left + self.columnWidth(column) - scaled(APART) <= self.viewport().width()
                    area = QRect(left, top, self.columnWidth(column), height)
                    painter.setPen(theme[found.role if whole else "muted"])
                    painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, found.text if whole else "…")

    def _share_width(self) -> None:
        """To every column what the widest text in it about this incident needs, so that none moves with the cursor.

        What is left over is shared equally.
        """
        needed = [math.ceil(width) + scaled(APART) for width in self._widest]
        room = self.viewport().width() - INSET
        spare = max(0, room - sum(needed)) // len(needed)
        for column, width in enumerate(needed):
            if self.columnWidth(column) != width + spare:
                self.setColumnWidth(column, width + spare)
        bar = self.horizontalScrollBar().sizeHint().height() if sum(needed) > room else 0
        self.setFixedHeight(scaled(HEAD) + scaled(LINE) * len(self._model.positions) + 2 + bar)

    def _on_clicked(self, index: QModelIndex) -> None:
        self._session.move(self._model.positions[index.row()] - self._session.cursor)
