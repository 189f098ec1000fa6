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
from spikeview.ui.plot.overlay import draw_overlay, overlay_columns, seen_beside
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
            draw_overlay(painter, overlay, self.panel, theirs, across, up, theme)
        for curve, pyramid, column in zip(plotted.drawn, plotted.curves, columns, strict=True):
            pen = QPen(theme[curve.role], 1)
            draw_curve(painter, pyramid, column, across, up, pen, self.panel.stairs, curve.dashed, curve.sparse)
        if plotted.strip is not None:
            draw_strip(painter, plotted.strip, across, parts.strip, theme["coefficient"])
        painter.setClipping(False)
        skipped = self.session.rows.skipped
        for marks, top in ((parts.above, area.top()), (parts.below, parts.values.bottom() + GAP)):
            if overlay is not None:
                draw_marks(painter, marks, theirs, overlay.skipped, across, top, theme, other=True)
            draw_marks(painter, marks, columns, skipped, across, top, theme)
        self._label_gutter(painter, parts)
        if limit is not None and limit.drawn.any():
            self._label_limit(painter, float(limit.high[limit.drawn][-1]), [*columns, *theirs], up, parts.values)

    def parts(self, plotted: Curves, area: QRectF) -> Parts:
        """Lanes only for kinds of rows that the run has, or beside it the one that it is compared with."""
        overlay, skips = self.session.comparison.overlay, len(self.session.rows.skipped)
        seen = plotted.seen
        if overlay is not None and self.panel.id in overlay.curves:
            seen, skips = seen | seen_beside(overlay, self.panel.id), skips + len(overlay.skipped)
        above, below = (lanes(seen, skips > 0, below) for below in (False, True))
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

    def _label_limit(self, painter: QPainter, value: float, columns: list[Envelope], up: Up, inner: QRectF) -> None:
        """Above or below its line, at the right or the left: where the fewest curves pass."""
        text, font = f"{self.panel.limit} {value:g}", fixed_font(11)
        width = QFontMetricsF(font).horizontalAdvance(text) + 6
        line = round(up.pixel(value))
        tops = [top for top in (line - 19, line + 3) if inner.top() <= top <= inner.bottom() - 16] or [line + 3]
        places = [QRectF(x, y, width, 16) for x in (inner.right() - width - 2, inner.left() + 2) for y in tops]
        area = min(places, key=lambda place: sum(_passing(column, place, inner.left(), up) for column in columns))
        painter.fillRect(area, self.session.theme.tint("panel", 0.8))
        painter.setFont(font)
        painter.setPen(self.session.theme["muted"])
        painter.drawText(area, Qt.AlignmentFlag.AlignCenter, text)


def _passing(columns: Envelope, place: QRectF, left: float, up: Up) -> int:
    """In how many columns of pixels a curve passes through a place."""
    beside = slice(max(0, int(place.left() - left)), int(place.right() - left) + 1)
    top, bottom = up.pixels(columns.high[beside]), up.pixels(columns.low[beside])
    return int(((top <= place.bottom()) & (bottom >= place.top()) & columns.drawn[beside]).sum())
