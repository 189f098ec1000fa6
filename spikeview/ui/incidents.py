"""The list of incidents, in order of their onset: each a card."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QRectF,
    QSize,
    Qt,
)
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QListView, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from spikeview.format import label, plural
from spikeview.importers.errors import RunError
from spikeview.rules.diagnosis import Diagnosed
from spikeview.ui.fonts import scaled
from spikeview.ui.session import Session
from spikeview.ui.spans import Span, draw, width
from spikeview.ui.values import severity_role, step_label, told

Index = QModelIndex | QPersistentModelIndex
LINE = 16
GAP = 8
AT_ONCE = 1_000


def card(diagnosed: Diagnosed, skips: int) -> list[list[Span]]:
    """Where, how long; what left first and how far; what followed. `skips` more of its rows skipped their step."""
    incident, run = diagnosed.incident, diagnosed.view.run
    first = incident.first_bad
    name, how = told(first)
    rows = incident.last - first.position + 1
    where = [
        Span(f"step {step_label(run, first.position)}", "text", bold=True),
        Span(f" {incident.persistence}"),
        Span(f", {plural(rows, 'row')}"),
    ]
    what = [Span("first "), Span(name, "text"), Span(f" {how}")]
    rest = followed(diagnosed, skips)
    return [where, what, [Span(rest)]] if rest else [where, what]


def followed(diagnosed: Diagnosed, skips: int) -> str:
    """By how much the first signal led, and what left after it; empty where nothing did. No row is read for it."""
    incident = diagnosed.incident
    ahead = max((lead.rows_ahead for lead in incident.lead), default=0)
    later = [label(name) for name in incident.extent if name not in (incident.first_bad.signal, "executed")]
    later += [plural(skips, "skip")] if skips else []
    return " · ".join([f"lead {ahead}"] * bool(ahead) + ["then " + ", ".join(later)] * bool(later))


class IncidentModel(QAbstractListModel):
    """The incidents of the run as lines of text: what a screen reader reads."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self._listed: tuple[Diagnosed, ...] = ()
        self._cards: dict[int, list[list[Span]]] = {}
        self._lines: dict[int, int] = {}
        for signal in (session.opened, session.grown):
            signal.connect(self._reset)

    def card(self, row: int) -> list[list[Span]]:
        """The lines of an incident, made when it is first looked at: by then its rows may be gone from the disk."""
        if row not in self._cards:
            diagnosed = self._session.incidents[row]
            try:
                self._cards[row] = card(diagnosed, self._session.skips(diagnosed))
            except RunError as error:
                where = Span(f"row {diagnosed.incident.first_bad.position:,}", "text", bold=True)
                self._cards[row] = [[where], [Span(str(error).rpartition(": ")[2], "bad")]]
        return self._cards[row]

    def lines(self, row: int) -> int:
        """How many lines its card has: a list is laid out by all of its cards, and shows a few."""
        if row not in self._lines:
            diagnosed = self._session.incidents[row]
            self._lines[row] = 3 if followed(diagnosed, self._session.skips(diagnosed)) else 2
        return self._lines[row]

    def rowCount(self, parent: Index = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(self._session.incidents)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole):
            lines = self.card(index.row())
            return "\n".join("".join(span.text for span in line) for line in lines)
        return None

    def _reset(self) -> None:
        """More rows may have come without another diagnosis: then the list is what it was."""
        if self._listed is not self._session.incidents:
            self.beginResetModel()
            self._listed, self._cards, self._lines = self._session.incidents, {}, {}
            self.endResetModel()


class IncidentDelegate(QStyledItemDelegate):
    """The card's edge has the severity's colour; the selected one is tinted."""

    def __init__(self, session: Session, model: IncidentModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._session, self._model = session, model

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(100, scaled(LINE) * self._model.lines(index.row()) + 14 + GAP)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        session, theme = self._session, self._session.theme
        diagnosed = session.incidents[index.row()]
        edge = theme[severity_role(diagnosed)]
        area = QRectF(option.rect).adjusted(1.5, 1, -1.5, -GAP)
        chosen = index.row() == session.incident
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(QPen(edge if chosen else theme["line"], 1))
        painter.setBrush(theme["raised"])
        painter.drawRoundedRect(area, 6, 6)
        if chosen:
            painter.setBrush(theme.tint(severity_role(diagnosed), 0.12))
            painter.drawRoundedRect(area, 6, 6)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(edge)
        painter.setClipRect(QRectF(area.left() - 1, area.top(), 3.5, area.height()))
        painter.drawRoundedRect(area.adjusted(-0.5, 0, 0, 0), 6, 6)
        painter.setClipping(False)
        for at, line in enumerate(self._model.card(index.row())):
            row = QRectF(area.left() + 12, area.top() + 6 + scaled(LINE) * at, area.width() - 20, scaled(LINE))
            size = 12 if at == 0 else 11
            whole = at > 0 or width(line, size) <= row.width()
            draw(painter, row, line if whole else line[:-1], theme, size=size)  # a number of rows is not cut
        painter.restore()


class IncidentList(QListView):
    """A click goes to an incident; the list follows when another view does."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        model = IncidentModel(session, self)
        self.setModel(model)
        self.setItemDelegate(IncidentDelegate(session, model, self))
        self.setAccessibleName("Incidents")
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.clicked.connect(self._on_chosen)
        self.activated.connect(self._on_chosen)
        session.incident_changed.connect(self._follow)
        for signal in (session.opened, session.grown):
            signal.connect(self._fit)
        session.opened.connect(self._follow)
        session.theme_changed.connect(self.viewport().update)

    def _on_chosen(self, index: QModelIndex) -> None:
        self._session.select(index.row())

    def _follow(self) -> None:
        if self._session.incident is not None:
            index = self.model().index(self._session.incident, 0)
            self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
            self.scrollTo(index)
        self.viewport().update()

    def _fit(self) -> None:
        """As high as its cards, up to half the column; beyond, it scrolls."""
        many = self.model().rowCount() > AT_ONCE
        self.setLayoutMode(QListView.LayoutMode.Batched if many else QListView.LayoutMode.SinglePass)
        heights = [self.sizeHintForRow(row) for row in range(min(self.model().rowCount(), 12))]
        self.setVisible(bool(heights))
        self.setFixedHeight(min(sum(heights), scaled(380)))
        self.scheduleDelayedItemsLayout()
