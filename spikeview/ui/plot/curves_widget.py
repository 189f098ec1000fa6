"""A panel of curves: grid, limit, curves, strip, marks, and another run's curves behind its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from spikeview.analysis.envelope import Envelope
from spikeview.ui.fonts import fixed_font, scaled
from spikeview.ui.panels.panel import CurvePanel
from spikeview.ui.panels.plotted import Curves
from spikeview.ui.plot.curve import columns_of, draw_curve, drawn_rows
from spikeview.ui.plot.grid import draw_grid, draw_label
from spikeview.ui.plot.marks import LANE, Mark, draw_marks, lanes
from spikeview.ui.plot.overlay import draw_overlay, overlay_columns
from spikeview.ui.plot.panel_widget import PanelWidget
from spikeview.ui.plot.scale import Up, fitted, value_ticks
from spikeview.ui.plot.strip import draw_limit, draw_strip
from spikeview.ui.spans import Span

STRIP = 6
GAP = 2


@dataclass(frozen=True)
class Parts:
    """How the height of a plot is shared: marks above, the values, the gutter of what has no logarithm, a strip."""

    above: tuple[Mark, ...]
    values: QRectF
    below: tuple[Mark, ...]
    strip: QRectF


class CurvesWidget(PanelWidget):
    """Draws a CurvePanel."""

    panel: CurvePanel

    def subtitle(self) -> list[Span]:
        plotted = self.plotted
        return [Span("   log" if isinstance(plotted, Curves) and plotted.log else "")]

    def draw_plot(self, painter: QPainter, area: QRectF) -> None:
        plotted = self.plotted
        assert isinstance(plotted, Curves)
        theme, across, parts = self.session.theme, self.across, self.parts(plotted, area)
        columns = [columns_of(curve, across) for curve in plotted.curves]
        limit = None if plotted.limit is None else columns_of(plotted.limit, across)
        overlay = self.session.comparison.overlay
        theirs = [] if overlay is None else overlay_columns(overlay, self.panel.id, across, len(self.session.run))
        up = self._up(plotted, [*columns, *theirs], limit, parts.values)
        ticks = self.panel.ticks or value_ticks(up, scaled(38))
        draw_grid(painter, up, parts.values, ticks, theme, self.panel.signed)
        painter.setClipRect(area)
        self.draw_incidents(painter, area)
        if limit is not None:
            draw_limit(painter, limit, across, up, theme.tint("norm", 0.7))
        if overlay is not None:
            draw_overlay(painter, overlay, self.panel.id, theirs, across, up, theme)
        for curve, pyramid, column in zip(plotted.drawn, plotted.curves, columns, strict=True):
            pen = QPen(theme[curve.role], 1)
            draw_curve(painter, pyramid, column, across, up, pen, self.panel.stairs, curve.dashed, curve.sparse)
        if plotted.strip is not None:
            draw_strip(painter, plotted.strip, across, parts.strip, theme["coefficient"])
        painter.setClipping(False)
        skipped = self.session.rows.skipped
        draw_marks(painter, parts.above, columns, skipped, across, area.top(), theme)
        draw_marks(painter, parts.below, columns, skipped, across, parts.values.bottom() + GAP, theme)
        self._label_gutter(painter, parts)
        if limit is not None and limit.drawn.any():
            self._label_limit(painter, float(limit.high[limit.drawn][-1]), up, parts.values)

    def parts(self, plotted: Curves, area: QRectF) -> Parts:
        """Lanes only for kinds of rows that the run has."""
        skipped = self.session.rows.skipped
        above, below = lanes(plotted, skipped), lanes(plotted, skipped, below=True)
        strip = scaled(STRIP) if plotted.strip is not None else 0
        foot = strip + LANE * len(below) + GAP
        return Parts(
            above,
            area.adjusted(0, LANE * len(above) + GAP, 0, -foot),
            below,
            QRectF(area.left(), area.bottom() - strip, area.width(), strip),
        )

    def _up(self, plotted: Curves, columns: list[Envelope], limit: Envelope | None, inner: QRectF) -> Up:
        if self.panel.limits is not None:
            return Up(*self.panel.limits, inner.top(), inner.bottom())
        lows = [column.low.min() for column in columns]
        highs = [column.high.max() for column in columns]
        if self.across.rows_per_pixel <= 1:
            for pyramid in plotted.curves:
                values = drawn_rows(pyramid, self.across)[1]
                lows, highs = [*lows, values.min(initial=np.inf)], [*highs, values.max(initial=-np.inf)]
        if limit is not None:
            lows, highs = [*lows, limit.low.min()], [*highs, limit.high.max()]
        low, high = float(min(lows)), float(max(highs))
        return fitted(low, high, self.panel.least_span, plotted.log, inner.top(), inner.bottom())

    def _label_gutter(self, painter: QPainter, parts: Parts) -> None:
        painter.setFont(fixed_font(11))
        for lane, mark in enumerate(parts.below):
            y = parts.values.bottom() + GAP + LANE * (lane + 0.5)
            draw_label(painter, y, parts.values.left(), mark.text, self.session.theme)

    def _label_limit(self, painter: QPainter, value: float, up: Up, inner: QRectF) -> None:
        text, font = f"{self.panel.limit} {value:g}", fixed_font(11)
        width = QFontMetricsF(font).horizontalAdvance(text)
        line = round(up.pixel(value))
        top = line - 19 if line - 19 >= inner.top() else line + 3  # below a line that has no room above it
        area = QRectF(inner.right() - width - 8, top, width + 6, 16)
        painter.fillRect(area, self.session.theme.tint("panel", 0.8))
        painter.setFont(font)
        painter.setPen(self.session.theme["muted"])
        painter.drawText(area, Qt.AlignmentFlag.AlignCenter, text)
