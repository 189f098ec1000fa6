"""The one row of step labels, under the last panel."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from spikeview.ui.fonts import fixed_font, scaled
from spikeview.ui.plot.rows_widget import RowsWidget
from spikeview.ui.plot.scale import step_ticks
from spikeview.ui.session import Session


class StepAxis(RowsWidget):
    """Steps, not rows, stand here; the mouse does what it does on a panel."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(session, parent)
        self.setFixedHeight(scaled(24))
        self.setAccessibleName("Step axis")
        for signal in (session.range_changed, session.opened, session.grown, session.theme_changed):
            signal.connect(self.update)

    def paint(self, painter: QPainter) -> None:
        if self.session.shown is None:
            return
        across = self.across
        painter.setFont(fixed_font(11))
        painter.setPen(self.session.theme["muted"])
        end = across.left + across.width
        name = scaled(46)
        for position, step in step_ticks(self.session.rows.steps, across, scaled(80)):
            x = across.pixel(position)
            if x < end - name:
                painter.drawText(QRectF(x - 60, 0, 120, self.height()), Qt.AlignmentFlag.AlignCenter, f"{step:,}")
        painter.drawText(
            QRectF(end - name, 0, name, self.height()),
            Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter,
            "step",
        )
