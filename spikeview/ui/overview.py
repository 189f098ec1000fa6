"""The whole run in a strip: its loss, incidents, resumes, and which part is in sight."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QMouseEvent, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QWidget

from spikeview.ui import visible
from spikeview.ui.fonts import fixed_font, scaled
from spikeview.ui.painted import Painted
from spikeview.ui.panels import PANELS
from spikeview.ui.picture import KeptPicture
from spikeview.ui.plot.curve import columns_of, draw_curve
from spikeview.ui.plot.rows_widget import GUTTER, MARGIN
from spikeview.ui.plot.scale import Across, fitted
from spikeview.ui.session import Session
from spikeview.ui.values import severity_role


class Overview(Painted):
    """A click or a drag moves what the panels show."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(session, parent)
        self.setFixedHeight(scaled(48))
        self.setAccessibleName("Overview of the whole run")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._picture = KeptPicture()
        session.range_changed.connect(self.update)
        session.opened.connect(self._redraw)
        session.theme_changed.connect(self._redraw)
        session.incident_changed.connect(self._redraw)

    def paint(self, painter: QPainter) -> None:
        if self.session.shown is None:
            return
        self._picture.draw(painter, self, self.session.theme["window"], self._draw_run)
        first, last = self.session.range
        if not visible.is_whole(first, last, len(self.session.run)):
            left, right = self._across.pixel(first), self._across.pixel(last)
            shown = QRectF(left, 1, max(4.0, right - left), self.height() - 3)
            painter.fillRect(shown, self.session.theme.tint("accent", 0.16))
            painter.setPen(QPen(self.session.theme["accent"], 1))
            painter.drawRect(shown)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._redraw()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._centre_on(event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._centre_on(event.position())

    def _centre_on(self, point: QPointF) -> None:
        if self.session.shown is None:
            return
        first, last = self.session.range
        centre = self._across.position(point.x())
        self.session.show_range(centre - (last - first) / 2, centre + (last - first) / 2)

    @property
    def _across(self) -> Across:
        first, last = visible.whole(len(self.session.run))
        left = scaled(GUTTER)
        return Across(first, last, left, max(1.0, self.width() - left - MARGIN))

    def _redraw(self) -> None:
        self._picture.forget()
        self.update()

    def _draw_run(self, painter: QPainter) -> None:
        across = self._across
        painter.fillRect(QRectF(across.left, 0, across.width, self.height()), self.session.theme["panel"])
        self._draw_curve(painter, across)
        self._draw_events(painter, across)
        self._draw_incidents(painter, across)

    def _draw_curve(self, painter: QPainter, across: Across) -> None:
        """The first panel that has something to show."""
        assert self.session.shown is not None
        plots = self.session.shown.plots[self.session.view_index]
        for panel in PANELS:
            plotted = plots[panel.id]
            if plotted is None:
                continue
            pyramid = plotted.curves[0]
            columns = columns_of(pyramid, across)
            up = fitted(float(columns.low.min()), float(columns.high.max()), 0.0, plotted.log, 6, self.height() - 6)
            draw_curve(painter, pyramid, columns, across, up, QPen(self.session.theme[panel.curves[0].role], 1))
            return

    def _draw_events(self, painter: QPainter, across: Across) -> None:
        segments = self.session.run.values("segment")
        pen = QPen(self.session.theme["muted"], 1)
        pen.setDashPattern([2, 2])
        painter.setFont(fixed_font(11))
        painter.setPen(pen)
        for position in (np.flatnonzero(np.diff(segments)) + 1).tolist():
            x = round(across.pixel(position)) + 0.5
            painter.drawLine(QLineF(x, 0, x, self.height()))
            painter.drawText(QRectF(x + 4, 1, 80, 14), Qt.AlignmentFlag.AlignLeft, "resume")

    def _draw_incidents(self, painter: QPainter, across: Across) -> None:
        for index, diagnosed in enumerate(self.session.incidents):
            if diagnosed.view.optimizer != self.session.view.optimizer:
                continue
            width = 3 if index == self.session.incident else 2
            x = across.pixel(diagnosed.incident.first_bad.position)
            painter.fillRect(
                QRectF(x - width / 2, 0, width, self.height()), self.session.theme[severity_role(diagnosed)]
            )
