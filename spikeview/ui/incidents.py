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

from spikeview.analysis.clocks import skipped_or_declined
from spikeview.format import label, plural
from spikeview.rules.diagnosis import Diagnosed
from spikeview.ui.fonts import scaled
from spikeview.ui.near import rows_of
from spikeview.ui.session import Session
from spikeview.ui.spans import Span, draw
from spikeview.ui.values import severity_role, step_label, told

Index = QModelIndex | QPersistentModelIndex
LINE = 16
GAP = 8
AT_ONCE = 200


def card(diagnosed: Diagnosed) -> list[list[Span]]:
    """Where, how long; what left first and how far; what followed."""
    incident, run = diagnosed.incident, diagnosed.view.run
    first = incident.first_bad
    name, how = told(first)
    rows = incident.last - first.position + 1
    where = [
        Span(f"step {step_label(run, first.position)}", "text", bold=True),
        Span(f" {incident.persistence}, {plural(rows, 'row')}"),
    ]
    ahead = max((lead.rows_ahead for lead in incident.lead), default=0)
    what = [Span("first "), Span(name, "text"), Span(f" {how}")]
    later = [label(name) for name in incident.extent if name not in (first.signal, "executed")]
    skips = int(skipped_or_declined(rows_of(run, first.position, incident.last)).sum())
    later += [plural(skips, "skip")] if skips else []
    rest = [f"lead {ahead}"] * bool(ahead) + ["then " + ", ".join(later)] * bool(later)
    return [where, what, [Span(" · ".join(rest))]] if rest else [where, what]


class IncidentModel(QAbstractListModel):
    """The incidents of the run as lines of text: what a screen reader reads."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self._cards: dict[int, list[list[Span]]] = {}
        for signal in (session.opened, session.grown):
            signal.connect(self._reset)

    def card(self, row: int) -> list[list[Span]]:
        """The lines of an incident, made when it is first looked at."""
        if row not in self._cards:
            self._cards[row] = card(self._session.incidents[row])
        return self._cards[row]

    def rowCount(self, parent: Index = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(self._session.incidents)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole):
            lines = self.card(index.row())
            return "\n".join("".join(span.text for span in line) for line in lines)
        return None

    def _reset(self) -> None:
        self.beginResetModel()
        self._cards = {}
        self.endResetModel()


class IncidentDelegate(QStyledItemDelegate):
    """The card's edge has the severity's colour; the selected one is tinted."""

    def __init__(self, session: Session, model: IncidentModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._session, self._model = session, model

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(100, scaled(LINE) * len(self._model.card(index.row())) + 14 + GAP)

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
            draw(painter, row, line, theme, size=12 if at == 0 else 11)
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
