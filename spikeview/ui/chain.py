"""The chain of one transition in causal order, each value beside its baseline."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from spikeview.rules.diagnosis import View
from spikeview.run import Kind
from spikeview.ui.fonts import fixed_font, scaled
from spikeview.ui.labels import muted
from spikeview.ui.session import Session
from spikeview.ui.values import FAR, NONE, OUTSIDE, Cell, cell, short

LINKS = [
    "batch_id",
    "loss",
    "grad_norm",
    "top_group_share",
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
VALUE = 114


def link(view: View, name: str, position: int) -> Cell:
    """One value of the chain; a group is named with its share, a step that did not run with its reason."""
    found = cell(view, name, position)
    run = view.run
    if name == "top_group_share" and run.kind(name)[position] == Kind.FINITE:
        share = float(run.values(name)[position])
        base = NONE if found.baseline == NONE else f"{float(view.baselines[name].center[position]):.0%}"
        group = run.text("top_group", position) or ""
        return Cell(f"{group} · {share:.0%}", found.role, base, found.deviation)
    if name == "executed" and found.text == "no":
        reason = run.text("skip_reason", position)
        return Cell(f"no · {reason}" if reason else "no", "warn")
    if name == "scheduled" and run.kind(name)[position] == Kind.FINITE:
        return Cell(f"{int(run.values(name)[position]):+d}")
    return found


class Chain(QWidget):
    """One line a value: its name, itself, a dot on the scale of its baseline, and the baseline."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(6)
        grid.setVerticalSpacing(2)
        grid.setColumnStretch(4, 1)
        self._values: list[QLabel] = []
        self._dots: list[Deviation] = []
        self._bases: list[QLabel] = []
        for row, name in enumerate(LINKS):
            value, dot, base = QLabel(self), Deviation(session, self), QLabel(self)
            value.setFont(fixed_font())
            value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            value.setAccessibleName(short(name))
            base.setFont(fixed_font())
            base.setObjectName("muted")
            label = muted(short(name), self)
            label.setWordWrap(False)
            # of fixed size, or each move of the cursor would have the whole column laid out anew
            for part, width in ((label, 84), (value, VALUE), (base, 56)):
                part.setFixedSize(scaled(width), scaled(17))
            for column, widget in enumerate((label, value, dot, base)):
                grid.addWidget(widget, row, column)
            self._values.append(value)
            self._dots.append(dot)
            self._bases.append(base)

    def show_row(self, view: View, position: int) -> None:
        for name, value, dot, base in zip(LINKS, self._values, self._dots, self._bases, strict=True):
            found = link(view, name, position)
            value.setText(value.fontMetrics().elidedText(found.text, Qt.TextElideMode.ElideRight, scaled(VALUE)))
            value.setToolTip(found.text)
            colour = f"color: {self._session.theme[found.role].name()}"
            if value.styleSheet() != colour:
                value.setStyleSheet(colour)
            value.setAccessibleDescription(f"{found.text} {found.away}")
            dot.show_deviation(found)
            base.setText("" if found.baseline == NONE else found.baseline)


class Deviation(QWidget):
    """A dot on a scale of MADs around the baseline: grey inside 3, amber beyond, red beyond 5."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self._cell = Cell("")
        self.setFixedSize(QSize(scaled(78), scaled(16)))
        session.theme_changed.connect(self.update)

    def show_deviation(self, found: Cell) -> None:
        self._cell = found
        self.setToolTip(f"{found.away} from the baseline {found.baseline}" if found.away else "no baseline")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme = QPainter(self), self._session.theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(Qt.PenStyle.NoPen)
        middle, width = self.height() / 2, self.width() - 8.0
        painter.setBrush(theme["line"])
        deviation = self._cell.deviation
        if deviation is None:
            painter.setBrush(theme.tint("muted", 0.6))
            painter.drawRect(QRectF(4, middle - 0.5, scaled(9), 1))
            painter.end()
            return
        painter.drawRect(QRectF(4, middle - 1, width, 2))
        band = width * OUTSIDE / REACH
        painter.drawRoundedRect(QRectF(4 + (width - band) / 2, middle - 3, band, 6), 3, 3)
        at = min(max(deviation, -REACH), REACH) if math.isfinite(deviation) else REACH
        role = self._cell.role if abs(deviation) > OUTSIDE else "muted"
        painter.setBrush(theme[role])
        radius = 3.6 if abs(deviation) <= FAR else 4.0
        painter.drawEllipse(QPointF(4 + width * (at + REACH) / (2 * REACH), middle), radius, radius)
        painter.end()
