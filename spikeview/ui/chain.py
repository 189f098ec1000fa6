"""The chain of one transition in causal order, each value that is watched beside its baseline."""

from __future__ import annotations

import math
from collections.abc import Callable

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QEnterEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from spikeview.cells import Kind
from spikeview.format import label, shown
from spikeview.report.transition import FAR, OUTSIDE, WATCHED
from spikeview.rules.diagnosis import View
from spikeview.ui.fonts import advance, fixed_font, metrics, scaled
from spikeview.ui.group_rates import of_row
from spikeview.ui.labels import muted
from spikeview.ui.near import near
from spikeview.ui.painted import Painted
from spikeview.ui.session import Session
from spikeview.ui.values import Cell, cell, whole_number

LAYERS = "layers"
MOST_LAYERS = 12
LEAST_SHARE = 0.005
LINKS = [
    "batch_id",
    "loss",
    "grad_norm",
    "top_group_share",
    LAYERS,
    "clip_coef",
    "loss_scale",
    "attempted",
    "executed",
    "lr",
    "update_ratio",
    "update_cosine",
    "moved",
    "scheduled",
]
REACH = 7.0
NAME, VALUE, DOT, BASE, GAP, LINE = 126, 99, 56, 66, 3, 17


def link(view: View, name: str, position: int) -> Cell:
    """One value of the chain; a group is named with its share, a step that did not run with its reason."""
    whole, at = view, position
    view, position = near(view, position)
    run = view.run
    if run.kind(name)[position] == Kind.FINITE:
        value = run.values(name)[position]
        if name == "top_group_share":
            return Cell(f"{run.text('top_group', position) or ''} · {100 * value:.0f} %".removeprefix(" · "))
        if name == "executed" and not value:
            reason = run.text("skip_reason", position)
            return Cell(f"no · {reason}" if reason else "no", "warn")
        if name == "scheduled":
            return Cell(f"{int(value):+d}")
    return cell(whole, name, at)


def carried(session: Session, position: int) -> Cell:
    """The parameters that carried the norm of a row, where it was deep, with their shares."""
    run, layers = session.run, session.rows.layers
    row = whole_number(run, "row", position)
    found = [] if layers is None or row is None else layers.carried(row)
    told = [f"{shown(name)} {100 * share:.0f} %" for name, share in found[:MOST_LAYERS] if share >= LEAST_SHARE]
    return Cell(", ".join(told)) if told else Cell("not recorded", "muted")


def batch(session: Session, position: int) -> Cell:
    """The batch, with whether it was captured and what came of feeding it again."""
    found, run = link(session.view, "batch_id", position), session.run
    row = whole_number(run, "row", position)
    kept = None if row is None else session.rows.captures.get(row)
    return found if kept is None else Cell(f"{found.text} · {kept}", found.role)


def rates(session: Session, position: int) -> Cell:
    """The learning rate of every group."""
    first, others = link(session.view, "lr", position), of_row(session.run, position)
    return Cell(f"{first.text}, {others}", first.role) if others else first


READERS: dict[str, Callable[[Session, int], Cell]] = {LAYERS: carried, "batch_id": batch, "lr": rates}


class Chain(QWidget):
    """One line a value: its name and itself; of a watched one a dot on the scale of its baseline, and the baseline."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(scaled(GAP))
        grid.setVerticalSpacing(1)
        grid.setColumnMinimumWidth(1, scaled(VALUE))
        grid.setColumnMinimumWidth(2, scaled(DOT))
        grid.setColumnStretch(4, 1)
        self._values = {name: Value(label(name), session, self) for name in LINKS}
        self._baselines = {
            name: (Deviation(label(name), session, self), muted("", self)) for name in LINKS if name in WATCHED
        }
        for row, name in enumerate(LINKS):
            title = muted(label(name), self)
            title.setWordWrap(False)
            title.setFixedSize(scaled(NAME), scaled(LINE))
            grid.addWidget(title, row, 0)
            grid.addWidget(self._values[name], row, 1, 1, 3)
        for name, (dot, base) in self._baselines.items():
            base.setFont(fixed_font())
            base.setFixedSize(scaled(BASE), scaled(LINE))
            grid.addWidget(dot, LINKS.index(name), 2)
            grid.addWidget(base, LINKS.index(name), 3)

    def show_row(self, position: int) -> None:
        for name, value in self._values.items():
            reader = READERS.get(name)
            found = link(self._session.view, name, position) if reader is None else reader(self._session, position)
            value.show_cell(found)
            if name in self._baselines:
                dot, base = self._baselines[name]
                dot.show_deviation(found)
                dot.setVisible(found.deviation is not None)
                base.setVisible(bool(found.center))
                if base.text() != found.center:
                    base.setText(found.center)
                    base.setToolTip(found.band)


class Value(QLabel):
    """One value, whose text can be selected while the mouse is on it; it has the room of what is not there.

    It is of fixed size and draws itself: a label that can be selected from, or that has a colour of its own, is laid
    out anew as a document with each move of the cursor.
    """

    def __init__(self, name: str, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self._cell = Cell("")
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setFont(fixed_font())
        self.setAccessibleName(name)
        self.setFixedSize(scaled(VALUE + DOT + BASE + 2 * GAP), scaled(LINE))

    def show_cell(self, found: Cell) -> None:
        if found == self._cell:
            return
        self._cell = found
        dotted = found.deviation is not None
        text, room = found.text, scaled(VALUE if dotted else VALUE + GAP + DOT) if found.center else self.width()
        if advance(fixed_font(), text) > room:
            text = metrics(fixed_font()).elidedText(text, Qt.TextElideMode.ElideRight, room)
        self.setText(text)
        self.setToolTip(found.text)
        self.setAccessibleDescription(f"{found.text} {found.away}".strip())
        self.update()

    def enterEvent(self, event: QEnterEvent) -> None:
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)

    def leaveEvent(self, event: QEvent) -> None:
        if not self.hasSelectedText():
            self.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.hasSelectedText():
            super().paintEvent(event)
            return
        with QPainter(self) as painter:
            painter.setFont(fixed_font())
            painter.setPen(self._session.theme[self._cell.role])
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter, self.text())


class Deviation(Painted):
    """A dot on a scale of MADs around the baseline: grey inside 3, on the bad side amber beyond, red beyond 5."""

    def __init__(self, name: str, session: Session, parent: QWidget) -> None:
        super().__init__(session, parent)
        self._cell = Cell("")
        self.setAccessibleName(f"{name} beside its baseline")
        self.setFixedSize(QSize(scaled(DOT), scaled(LINE - 1)))
        session.theme_changed.connect(self.update)

    def show_deviation(self, found: Cell) -> None:
        if found == self._cell:
            return
        self._cell = found
        told = f"{found.away} from the baseline {found.band}" if found.away else ""
        self.setToolTip(told)
        self.setAccessibleDescription(told)
        self.update()

    def paint(self, painter: QPainter) -> None:
        """Empty where there is no baseline or no number."""
        deviation = self._cell.deviation
        if deviation is None:
            return
        theme = self.session.theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(Qt.PenStyle.NoPen)
        middle, width = self.height() / 2, self.width() - 8.0
        painter.setBrush(theme["line"])
        painter.drawRect(QRectF(4, middle - 1, width, 2))
        band = width * OUTSIDE / REACH
        painter.drawRoundedRect(QRectF(4 + (width - band) / 2, middle - 3, band, 6), 3, 3)
        at = min(max(deviation, -REACH), REACH) if math.isfinite(deviation) else REACH
        painter.setBrush(theme["muted" if self._cell.role == "text" else self._cell.role])
        radius = 3.6 if abs(deviation) <= FAR else 4.0
        painter.drawEllipse(QPointF(4 + width * (at + REACH) / (2 * REACH), middle), radius, radius)
