"""One panel on the screen: head, strip of marks, grid, curves, incidents, cursor."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QLineF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from spikeview.analysis.envelope import Envelope
from spikeview.ui.fonts import fixed_font, scaled
from spikeview.ui.panels.panel import Panel, Plotted
from spikeview.ui.picture import KeptPicture
from spikeview.ui.plot.curve import columns_of, draw_curve, draw_limit, draw_lines, draw_strip, drawn_rows
from spikeview.ui.plot.marks import LANE, draw_marks, lanes
from spikeview.ui.plot.rows_widget import GUTTER, MARGIN, RowsWidget
from spikeview.ui.plot.scale import Up, fitted, value_label, value_ticks
from spikeview.ui.session import Session
from spikeview.ui.spans import Span, draw
from spikeview.ui.values import severity_role

HEAD = 26
STRIP = 6
RADIUS = 6.0


class PanelWidget(RowsWidget):
    """Draws a panel's series for the rows in sight; what does not follow the mouse is kept as a picture."""

    def __init__(self, panel: Panel, session: Session, parent: QWidget) -> None:
        super().__init__(session, parent)
        self.panel = panel
        self.setAccessibleName(f"{panel.title} plot")
        self.setAccessibleDescription(panel.help)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._picture = KeptPicture()
        for signal in (session.range_changed, session.incident_changed, session.theme_changed):
            signal.connect(self._redraw)
        session.opened.connect(self._on_opened)

    @property
    def plotted(self) -> Plotted | None:
        shown = self.session.shown
        return None if shown is None else shown.plots[self.session.view_index][self.panel.id]

    def paint(self, painter: QPainter) -> None:
        if self.session.shown is None:
            return
        self._picture.draw(painter, self, self.session.theme["window"], self._draw_panel)
        if self.plotted is not None:
            self._draw_lines(painter)
        self._draw_head(painter)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._redraw()

    def sizeHint(self) -> QSize:
        return QSize(scaled(500), scaled(16) * self.panel.weight)

    def minimumSizeHint(self) -> QSize:
        return QSize(scaled(200), scaled(HEAD if self.plotted is None else 84))

    def _on_opened(self) -> None:
        """A panel that has nothing to show keeps only its head."""
        self.setMaximumHeight(scaled(HEAD) if self.plotted is None else 16_777_215)
        self.updateGeometry()
        self._redraw()

    def _redraw(self) -> None:
        self._picture.forget()
        self.update()

    @property
    def _plot_area(self) -> QRectF:
        left, top = scaled(GUTTER), scaled(HEAD)
        return QRectF(left, top, self.width() - left - MARGIN, self.height() - top - 8)

    def _draw_panel(self, painter: QPainter) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.session.theme["panel"])
        painter.drawRoundedRect(QRectF(self.rect()), RADIUS, RADIUS)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        if self.plotted is not None:
            self._draw_plot(painter, self.plotted)

    def _draw_plot(self, painter: QPainter, plotted: Plotted) -> None:
        theme, across, area = self.session.theme, self.across, self._plot_area
        columns = [columns_of(curve, across) for curve in plotted.curves]
        limit = None if plotted.limit is None else columns_of(plotted.limit, across)
        strip = scaled(STRIP) if plotted.strip is not None else 0
        inner = area.adjusted(0, LANE * len(lanes(plotted)) + 2, 0, -strip - 2)
        up = self._up(plotted, columns, limit, inner)
        self._draw_grid(painter, up, inner)
        painter.setClipRect(area)
        self._draw_incidents(painter, area)
        if limit is not None:
            draw_limit(painter, limit, across, up, theme.tint("norm", 0.7))
        for curve, pyramid, column in zip(self.panel.curves, plotted.curves, columns, strict=True):
            pen = QPen(theme[curve.role], 1)
            draw_curve(painter, pyramid, column, across, up, pen, self.panel.stairs, curve.dashed)
        if plotted.strip is not None:
            draw_strip(
                painter,
                plotted.strip,
                across,
                QRectF(area.left(), area.bottom() - strip, area.width(), strip),
                theme["coefficient"],
            )
        painter.setClipping(False)
        draw_marks(painter, plotted, columns, across, area.top(), theme)
        if limit is not None and limit.drawn.any():
            self._label_limit(painter, float(limit.high[limit.drawn][-1]), up, inner)

    def _up(self, plotted: Plotted, columns: list[Envelope], limit: Envelope | None, inner: QRectF) -> Up:
        if self.panel.limits is not None:
            return Up(*self.panel.limits, inner.top(), inner.bottom())
        lows, highs = [], []
        for pyramid, column in zip(plotted.curves, columns, strict=True):
            values = drawn_rows(pyramid, self.across)[1] if self.across.rows_per_pixel <= 1 else np.empty(0)
            lows += [column.low.min(), values.min(initial=np.inf)]
            highs += [column.high.max(), values.max(initial=-np.inf)]
        if limit is not None:
            lows, highs = [*lows, limit.low.min()], [*highs, limit.high.max()]
        return fitted(
            float(min(lows)), float(max(highs)), self.panel.least_span, plotted.log, inner.top(), inner.bottom()
        )

    def _draw_grid(self, painter: QPainter, up: Up, inner: QRectF) -> None:
        theme = self.session.theme
        ticks = [1.0, 0.0, -1.0] if self.panel.limits is not None else value_ticks(up, scaled(38))
        painter.setFont(fixed_font(11))
        for value in ticks:
            y = round(up.pixel(value)) + 0.5
            painter.setPen(QPen(theme["grid"], 1))
            painter.drawLine(QLineF(inner.left(), y, inner.right(), y))
            painter.setPen(theme["muted"])
            label = QRectF(0, y - 9, inner.left() - 7, 18)
            painter.drawText(
                label,
                Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter,
                value_label(value, ticks, up.log, self.panel.signed),
            )

    def _draw_incidents(self, painter: QPainter, area: QRectF) -> None:
        across = self.across
        for index, diagnosed in enumerate(self.session.incidents):
            if diagnosed.view.optimizer != self.session.view.optimizer:
                continue
            first, last = diagnosed.incident.first_bad.position, diagnosed.incident.last
            left, right = across.pixel(first - 0.5), across.pixel(last + 0.5)
            if right < area.left() or left > area.right():
                continue
            tint = self.session.theme.tint(severity_role(diagnosed), 0.14 if index == self.session.incident else 0.07)
            painter.fillRect(QRectF(left, area.top(), max(3.0, right - left), area.height()), tint)

    def _label_limit(self, painter: QPainter, value: float, up: Up, inner: QRectF) -> None:
        text, font = f"{self.panel.limit} {value:g}", fixed_font(11)
        width = QFontMetricsF(font).horizontalAdvance(text)
        area = QRectF(inner.right() - width - 8, round(up.pixel(value)) - 19, width + 6, 16)
        painter.fillRect(area, self.session.theme.tint("panel", 0.8))
        painter.setFont(font)
        painter.setPen(self.session.theme["muted"])
        painter.drawText(area, Qt.AlignmentFlag.AlignCenter, text)

    def _draw_lines(self, painter: QPainter) -> None:
        """The transition dashed, the row it led to dotted where they can be told apart, the mouse as a thin line."""
        across, area, theme, session = self.across, self._plot_area, self.session.theme, self.session
        self._upright(painter, across.pixel(session.cursor), theme["text"], (4, 3), area)
        if session.observed is not None and across.rows_per_pixel < 0.2:
            self._upright(painter, across.pixel(session.observed), theme.tint("text", 0.6), (1, 3), area)
        if session.hovered is not None:
            self._upright(painter, across.pixel(session.hovered), theme.tint("muted", 0.6), (1, 0), area)

    @staticmethod
    def _upright(painter: QPainter, x: float, colour: QColor, dash: tuple[int, int], area: QRectF) -> None:
        """An upright line in dashes: as lines of their own, for Qt takes long over a pen's pattern."""
        if not area.left() - 1 <= x <= area.right() + 1:
            return
        at = round(x) + 0.5
        tops = np.arange(area.top(), area.bottom(), sum(dash))
        draw_lines(painter, np.stack([at + 0 * tops, tops, at + 0 * tops, tops + dash[0]], axis=1), QPen(colour, 1))

    def _draw_head(self, painter: QPainter) -> None:
        theme, session = self.session.theme, self.session
        area = QRectF(11, 0, self.width() - 11 - MARGIN, scaled(HEAD))
        title = Span(self.panel.title, "muted" if self.plotted is None else "text", bold=True)
        scale = Span("   log" if self.plotted is not None and self.plotted.log else "")
        draw(painter, area, [title, scale], theme)
        rest = area.adjusted(QFontMetricsF(title.font(12)).horizontalAdvance(title.text + scale.text) + 12, 0, 0, 0)
        if self.plotted is None:
            missing = ", ".join(self.panel.missing(session.run))
            draw(painter, rest, [Span("not recorded: "), Span(missing, fixed=True)], theme, right=True)
            return
        row = session.inspected if session.hovered is None else session.hovered
        draw(painter, rest, self.panel.head(session.view, row), theme, right=True)
