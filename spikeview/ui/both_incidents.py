"""The incidents of this run and of the one it is compared with in one list: marked by shape, word and colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QKeyEvent, QPainter, QPen
from PySide6.QtWidgets import QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from spikeview.rules.diagnosis import Diagnosed
from spikeview.ui.fonts import scaled
from spikeview.ui.same import same_incident
from spikeview.ui.session import Session
from spikeview.ui.side_by_side import Pair, onset
from spikeview.ui.spans import Span, draw, width
from spikeview.ui.values import step_label, told

Index = QModelIndex | QPersistentModelIndex
BOTH, HERE, THERE = Span("◆ both", "accent", bold=True), Span("◀ here", "text", bold=True), Span("▷ there", "muted")
LINE, MOST = 16, 6


def mark(pair: Pair) -> Span:
    """Which of the runs has it."""
    return HERE if pair.theirs is None else THERE if pair.ours is None else BOTH


def lines(pair: Pair) -> tuple[list[Span], list[Span]]:
    """What began where, and what the other of the two runs has beside it."""
    if pair.ours and pair.theirs:
        second = f"there {' '.join(_began(pair.theirs))}" + (f" · {pair.batch}" if pair.batch else "")
    else:
        where = "there" if pair.ours else "here"
        second = f"no row {where}" if pair.beside is None else f"no incident begins {where}"
    step, what = _began(pair.first)
    return [Span(step, "text", bold=True), Span(f" {what}")], [Span(second)]


def counted(pairs: Sequence[Pair]) -> str:
    """`1 in both, 2 only here, 0 only there`."""
    marks = [mark(pair) for pair in pairs]
    return f"{marks.count(BOTH)} in both, {marks.count(HERE)} only here, {marks.count(THERE)} only there"


class PairModel(QAbstractListModel):
    """The pairs as lines of text: what a screen reader reads."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.pairs: Sequence[Pair] = ()

    def show(self, pairs: Sequence[Pair]) -> None:
        self.beginResetModel()
        self.pairs = pairs
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(self.pairs)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole):
            pair = self.pairs[index.row()]
            which = mark(pair).text.split()[1]
            first, second = ("".join(span.text for span in line) for line in lines(pair))
            return f"{which if which == 'both' else f'only {which}'}: {first}\n{second}"
        return None


class PairDelegate(QStyledItemDelegate):
    """Two lines behind the mark; a frame about the one that the keys are at."""

    def __init__(self, session: Session, model: PairModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._session, self._model = session, model

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(100, 2 * scaled(LINE) + 6)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        pair, theme = self._model.pairs[index.row()], self._session.theme
        area = QRectF(option.rect).adjusted(0.5, 0.5, -0.5, -1.5)
        painter.save()
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setPen(QPen(theme["accent" if option.state & QStyle.StateFlag.State_HasFocus else "line"], 1))
            painter.setBrush(theme["raised"])
            painter.drawRoundedRect(area, 4, 4)
        badge = max(width([each], 11) for each in (BOTH, HERE, THERE)) + 10
        line = QRectF(area.left() + 6, area.top() + 1, area.width() - 12, scaled(LINE))
        draw(painter, line, [mark(pair)], theme, size=11)
        for at, spans in enumerate(lines(pair)):
            draw(painter, line.adjusted(badge, at * scaled(LINE), 0, at * scaled(LINE)), spans, theme, size=11)
        painter.restore()


class BothIncidents(QListView):
    """Up and Down walk it, Enter or a click goes to where an incident stands in this run."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session, self._model = session, PairModel(self)
        self.setModel(self._model)
        self.setItemDelegate(PairDelegate(session, self._model, self))
        self.setAccessibleName("Incidents of both runs")
        self.setUniformItemSizes(True)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.clicked.connect(self._on_chosen)
        session.theme_changed.connect(self.viewport().update)

    def show_pairs(self, pairs: Sequence[Pair]) -> None:
        """As high as its lines, up to MOST of them; the keys stay at the incident where they were."""
        if pairs is not self._model.pairs:
            at = self.currentIndex().row()
            kept = None if at < 0 else _place(self._model.pairs[at])
            self._model.show(pairs)
            for row, pair in enumerate(pairs):
                if _place(pair) == kept:
                    self.setCurrentIndex(self._model.index(row, 0))
            self.setFixedHeight(min(len(pairs), MOST) * (2 * scaled(LINE) + 6))
        self.setVisible(bool(pairs))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter is not left to the style: some only activate by a double click."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self._on_chosen(self.currentIndex())
        else:
            super().keyPressEvent(event)

    def _on_chosen(self, index: QModelIndex) -> None:
        pair, session = self._model.pairs[index.row()], self._session
        own = None if pair.ours is None else same_incident(pair.ours, session.incidents)
        if own is not None:
            session.select(own)
        elif pair.row is None:
            session.told.emit(f"No row of this run stands beside {_began(pair.first)[0]} of the other.")
        else:
            # as with an incident of this run: at its own update where that went bad, else at the one that led to it
            session.inspect_row(pair.row + int(pair.first.transition == onset(pair.first)))


def _place(pair: Pair) -> tuple[bool, int]:
    """What tells a pair from the others, of whatever clock."""
    return pair.ours is None, onset(pair.first)


def _began(diagnosed: Diagnosed) -> tuple[str, str]:
    first = diagnosed.incident.first_bad
    return f"step {step_label(diagnosed.view.run, first.position)}", " ".join(told(first)).strip()
