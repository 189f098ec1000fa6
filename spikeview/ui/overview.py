"""The whole run in a strip: its loss, its incidents, skips, resumes and checkpoints, and which part is in sight."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QWidget

from spikeview.ui import visible
from spikeview.ui.fonts import fixed_font, scaled
from spikeview.ui.panels import PANELS
from spikeview.ui.panels.panel import CurvePanel
from spikeview.ui.panels.plotted import Curves
from spikeview.ui.picture import KeptPicture
from spikeview.ui.plot.curve import columns_of, draw_curve
from spikeview.ui.plot.marks import marked
from spikeview.ui.plot.rows_widget import RowsWidget
from spikeview.ui.plot.scale import fitted
from spikeview.ui.session import Session

EDGE = 4
SKIPS = 3
BAR, CHOSEN = 2, 3
FEW, FAINT = 0.25, 0.4  # of the width; of many incidents the bars would be all there is to see


class Overview(RowsWidget):
    """A drag zooms to what it spans, one of the part in sight moves it; a click moves it there."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(session, parent)
        self.setFixedHeight(scaled(52))
        self.setAccessibleName("Overview of the whole run")
        self.setAccessibleDescription("Bars are incidents, dashes resumes, triangles checkpoints, ticks skipped steps")
        self.setToolTip("bars: incidents   ┆ resume   ▾ checkpoint   ticks below: skipped steps")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._picture = KeptPicture()
        session.range_changed.connect(self.update)
        for signal in (session.opened, session.grown, session.drawn, session.theme_changed, session.incident_changed):
            signal.connect(self._redraw)

    @property
    def whole(self) -> tuple[float, float]:
        return visible.whole(len(self.session.run))

    def paint(self, painter: QPainter) -> None:
        if self.session.shown is None:
            return
        self._picture.draw(painter, self, self.session.theme["window"], self._draw_run)
        first, last = self.session.range
        if not visible.is_whole(first, last, len(self.session.run)):
            left, right = self.across.pixel(first), self.across.pixel(last)
            shown = QRectF(left, 1, max(4.0, right - left), self.height() - 3)
            painter.fillRect(shown, self.session.theme.tint("accent", 0.16))
            painter.setPen(QPen(self.session.theme["accent"], 1))
            painter.drawRect(shown)
        self.draw_selection(painter, 1, self.height() - 2)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._redraw()

    def drag_at(self, point: QPointF, pans: bool) -> str:
        first, last = (self.across.pixel(each) for each in self.session.range)
        inside = first - EDGE <= point.x() <= last + EDGE
        whole = visible.is_whole(*self.session.range, len(self.session.run))
        return "pan" if pans or (inside and not whole) else "zoom?"

    def pan(self, moved: float) -> None:
        first, last = self._range_pressed
        rows = moved * self.across.rows_per_pixel
        self.session.show_range(first + rows, last + rows, gesture="pan")

    def clicked(self, point: QPointF) -> None:
        first, last = self.session.range
        centre = self.across.position(point.x())
        self.session.show_range(centre - (last - first) / 2, centre + (last - first) / 2)

    def _redraw(self) -> None:
        self._picture.forget()
        self.update()

    def _draw_run(self, painter: QPainter) -> None:
        across, theme = self.across, self.session.theme
        painter.fillRect(QRectF(across.left, 0, across.width, self.height()), theme["panel"])
        self._draw_incidents(painter)
        self._draw_curve(painter)
        for column in marked(self.session.rows.skipped, across).tolist():
            painter.fillRect(QRectF(across.left + column, self.height() - 1 - SKIPS, 1, SKIPS), theme["warn"])
        self._draw_resumes(painter)
        self._draw_checkpoints(painter)

    def _draw_curve(self, painter: QPainter) -> None:
        """The first panel that has curves to show."""
        for panel_id in self.session.series.wanted:
            plotted, panel = self.session.series.of(panel_id), next(each for each in PANELS if each.id == panel_id)
            if isinstance(plotted, Curves) and isinstance(panel, CurvePanel):
                pyramid = plotted.curves[0]
                columns = columns_of(pyramid, self.across)
                low, high = float(columns.low.min()), float(columns.high.max())
                up = fitted(low, high, 0.0, plotted.log, 6, self.height() - 6 - SKIPS)
                pen = QPen(self.session.theme[panel.curves[0].role], 1)
                draw_curve(painter, pyramid, columns, self.across, up, pen)
                return

    def _draw_resumes(self, painter: QPainter) -> None:
        pen = QPen(self.session.theme["muted"], 1)
        pen.setDashPattern([2, 2])
        painter.setFont(fixed_font(11))
        painter.setPen(pen)
        free = -1.0
        for position in self.session.rows.resumes.tolist():
            x = round(self.across.pixel(position)) + 0.5
            painter.drawLine(QLineF(x, 0, x, self.height()))
            if x > free:
                painter.drawText(QRectF(x + 4, 1, 80, 14), Qt.AlignmentFlag.AlignLeft, "resume")
                free = x + scaled(56)

    def _draw_checkpoints(self, painter: QPainter) -> None:
        """A small triangle at the top for each, as many as can be told apart."""
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.session.theme["good"])
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        for column in marked(self.session.rows.checkpoints, self.across).tolist():
            x = self.across.left + column + 0.5
            painter.drawPolygon([QPointF(x - 3.5, 0), QPointF(x + 3.5, 0), QPointF(x, 5)])
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)

    def _draw_incidents(self, painter: QPainter) -> None:
        """As bars behind the curve, those that share a column of pixels as one; where there are many they are faint."""
        bands, across, theme = self.session.bands, self.across, self.session.theme
        columns = np.round(across.pixels(bands.first))
        strength = 1.0 if len(np.unique(columns)) * BAR < FEW * across.width else FAINT
        for role in ("warn", "bad"):
            for column in np.unique(columns[bands.role == role]).tolist():
                painter.fillRect(QRectF(column - BAR / 2, 0, BAR, self.height()), theme.tint(role, strength))
        for at in np.flatnonzero(bands.number == self.session.incident).tolist():
            area = QRectF(columns[at] - CHOSEN / 2, 0, CHOSEN, self.height())
            painter.fillRect(area, theme[str(bands.role[at])])
