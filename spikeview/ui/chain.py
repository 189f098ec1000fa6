"""The chain of one transition in causal order, each value that is watched beside its baseline."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from spikeview.format import label
from spikeview.report.transition import FAR, OUTSIDE, WATCHED
from spikeview.rules.diagnosis import View
from spikeview.run import Kind
from spikeview.ui.fonts import fixed_font, scaled
from spikeview.ui.labels import muted
from spikeview.ui.painted import Painted
from spikeview.ui.session import Session
from spikeview.ui.values import Cell, cell

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
NAME, VALUE, DOT, BASE, GAP, LINE = 122, 103, 56, 66, 3, 17


def link(view: View, name: str, position: int) -> Cell:
    """One value of the chain; a group is named with its share, a step that did not run with its reason."""
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
    return cell(view, name, position)


class Chain(QWidget):
    """One line a value: its name and itself; of a watched one a dot on the scale of its baseline, and the baseline."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(scaled(GAP))
        grid.setVerticalSpacing(1)
        grid.setColumnStretch(4, 1)
        self._values = {name: self._value(name) for name in LINKS}
        self._baselines = {name: (Deviation(session, self), muted("", self)) for name in LINKS if name in WATCHED}
        for row, name in enumerate(LINKS):
            title = muted(label(name), self)
            title.setWordWrap(False)
            title.setFixedSize(scaled(NAME), scaled(LINE))
            grid.addWidget(title, row, 0)
            grid.addWidget(self._values[name], row, 1, 1, 1 if name in WATCHED else 3)
        for name, (dot, base) in self._baselines.items():
            base.setFont(fixed_font())
            base.setFixedSize(scaled(BASE), scaled(LINE))
            grid.addWidget(dot, LINKS.index(name), 2)
            grid.addWidget(base, LINKS.index(name), 3)

    def _value(self, name: str) -> QLabel:
        """Of fixed size, or each move of the cursor would have the whole column laid out anew."""
        value = QLabel(self)
        value.setTextFormat(Qt.TextFormat.PlainText)
        value.setFont(fixed_font())
        value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        value.setAccessibleName(label(name))
        wide = VALUE if name in WATCHED else VALUE + DOT + BASE + 2 * GAP
        value.setFixedSize(scaled(wide), scaled(LINE))
        return value

    def show_row(self, view: View, position: int) -> None:
        for name, value in self._values.items():
            found = link(view, name, position)
            value.setText(value.fontMetrics().elidedText(found.text, Qt.TextElideMode.ElideRight, value.width()))
            value.setToolTip(found.text)
            colour = f"color: {self._session.theme[found.role].name()}"
            if value.styleSheet() != colour:
                value.setStyleSheet(colour)
            value.setAccessibleDescription(f"{found.text} {found.away}".strip())
            if name in self._baselines:
                dot, base = self._baselines[name]
                dot.show_deviation(found)
                base.setText(found.center)
                base.setToolTip(found.band)


class Deviation(Painted):
    """A dot on a scale of MADs around the baseline: grey inside 3, on the bad side amber beyond, red beyond 5."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(session, parent)
        self._cell = Cell("")
        self.setFixedSize(QSize(scaled(DOT), scaled(LINE - 1)))
        session.theme_changed.connect(self.update)

    def show_deviation(self, found: Cell) -> None:
        self._cell = found
        self.setToolTip(f"{found.away} from the baseline {found.band}" if found.away else "")
        self.update()

    def paint(self, painter: QPainter) -> None:
        """Empty where there is no baseline; without a dot where there is no number."""
        if not self._cell.center:
            return
        theme = self.session.theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(Qt.PenStyle.NoPen)
        middle, width = self.height() / 2, self.width() - 8.0
        painter.setBrush(theme["line"])
        painter.drawRect(QRectF(4, middle - 1, width, 2))
        band = width * OUTSIDE / REACH
        painter.drawRoundedRect(QRectF(4 + (width - band) / 2, middle - 3, band, 6), 3, 3)
        deviation = self._cell.deviation
        if deviation is not None:
            at = min(max(deviation, -REACH), REACH) if math.isfinite(deviation) else REACH
            painter.setBrush(theme["muted" if self._cell.role == "text" else self._cell.role])
            radius = 3.6 if abs(deviation) <= FAR else 4.0
            painter.drawEllipse(QPointF(4 + width * (at + REACH) / (2 * REACH), middle), radius, radius)
