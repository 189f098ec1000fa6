"""A heatmap of named things over rows; a click on one shows its curve, another click all of them again.

Another run's stands below it, in the same colours and on the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFontMetricsF, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QWidget

from spikeview.format import number, shown
from spikeview.ui.fonts import fixed_font, scaled
from spikeview.ui.panels.panel import Cells, HeatPanel
from spikeview.ui.plot.curve import draw_joined
from spikeview.ui.plot.grid import draw_grid
from spikeview.ui.plot.heat import heat, image, largest_of
from spikeview.ui.plot.overlay import DIMMED
from spikeview.ui.plot.panel_widget import PanelWidget
from spikeview.ui.plot.scale import fitted, value_ticks
from spikeview.ui.session import Session
from spikeview.ui.spans import Span, draw, width
from spikeview.ui.values import step_label

NAMED_FROM = 15
BETWEEN = 4


class HeatWidget(PanelWidget):
    """Draws a HeatPanel."""

    panel: HeatPanel

    def __init__(self, panel: HeatPanel, session: Session, parent: QWidget) -> None:
        super().__init__(panel, session, parent)
        self._under: int | None = None
        self._below = False
        self.chosen: str | None = None
        session.opened.connect(self._forget_choice)

    def draw_plot(self, painter: QPainter, area: QRectF) -> None:
        parts = self._parts(area)
        if self.chosen in self._cells.names:
            self._draw_curves(painter, area, [cells for _, cells in parts], self._cells.names.index(self.chosen))
            return
        theme = self.session.theme
        found = [heat(cells, self.across, max(1, int(box.height()))) for box, cells in parts]
        largest = max(map(largest_of, found))
        for (box, cells), values in zip(parts, found, strict=True):
            picture = image(values, largest, theme["panel"], theme["norm"], theme["bad"])
            painter.drawImage(QPointF(box.left(), box.top()), picture)
            if box.height() / len(cells.names) >= scaled(NAMED_FROM):
                self._draw_names(painter, box, cells)
        if len(parts) > 1:
            self._draw_runs(painter, [box for box, _ in parts])

    def subtitle(self) -> list[Span]:
        return [Span(f"   {self.chosen}", "text", fixed=True)] if self.chosen is not None else []

    def head(self, row: int) -> Sequence[Span]:
        """The cell under the mouse, or the thing with the largest value on the last deep row."""
        which, cells = self._under_mouse()
        at = int(np.searchsorted(cells.positions, row, side="right")) - 1
        if at < 0:
            return [Span(f"{which}no deep row up to here")]
        values = cells.values[:, at]
        name = self._name(cells, values)
        if name is None:
            return [Span("nothing recorded of this row")]
        where = step_label(self.session.run, int(cells.positions[at]))
        told = number(float(values[name]), digits=3)
        return [Span(f"{which}step {where}   {cells.names[name]} "), Span(told, "text", fixed=True)]

    def clicked(self, point: QPointF) -> None:
        super().clicked(point)
        if self.plotted is None or not self.plot_area.contains(point):
            return
        self.chosen = None if self.chosen is not None else self._cells.names[self._line_at(point)[1]]
        self.redraw()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        inside = self.plotted is not None and self.plot_area.contains(event.position())
        self._below, self._under = self._line_at(event.position()) if inside else (False, None)
        self.update()

    def _parts(self, area: QRectF) -> list[tuple[QRectF, Cells]]:
        """The cells of this run and, below, of the one it is compared with, each with its place."""
        overlay = self.session.comparison.overlay
        other = None if overlay is None else overlay.cells.get(self.panel.id)
        if other is None or other.names != self._cells.names:
            return [(area, self._cells)]
        half = (area.height() - BETWEEN) / 2
        top = QRectF(area.left(), area.top(), area.width(), half)
        return [(top, self._cells), (top.translated(0, half + BETWEEN), other)]

    def _under_mouse(self) -> tuple[str, Cells]:
        """What is said before a cell where there are two runs, and the cells of the one that the mouse is on."""
        parts = self._parts(self.plot_area)
        if len(parts) == 1:
            return "", self._cells
        return ("other run   ", parts[1][1]) if self._below else ("this run   ", self._cells)

    @property
    def _cells(self) -> Cells:
        plotted = self.plotted
        assert isinstance(plotted, Cells)
        return plotted

    def _name(self, cells: Cells, values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int | None:
        if self.chosen in cells.names:
            return cells.names.index(self.chosen)
        if self._under is not None and self._under < len(cells.names):
            return self._under
        return None if np.isnan(values).all() else int(np.nanargmax(values))

    def _line_at(self, point: QPointF) -> tuple[bool, int]:
        """Whether a point lies on the other run's cells, and on which line of them."""
        parts, many = self._parts(self.plot_area), len(self._cells.names)
        below = len(parts) > 1 and point.y() >= parts[1][0].top()
        box = parts[below][0]
        return below, min(max(int((point.y() - box.top()) / box.height() * many), 0), many - 1)

    def _draw_runs(self, painter: QPainter, boxes: Sequence[QRectF]) -> None:
        """Whose cells are whose, at the right."""
        theme, overlay = self.session.theme, self.session.comparison.overlay
        assert overlay is not None
        for box, run in zip(boxes, (self.session.run, overlay.view.run), strict=True):
            spans = [Span(shown(run.name, 40), "text")]
            wide = width(spans, 11) + 8
            label = QRectF(box.right() - wide, box.top(), wide, scaled(NAMED_FROM))
            painter.fillRect(label, theme.tint("panel", 0.75))
            draw(painter, label.adjusted(4, 0, 0, 0), spans, theme, size=11)

    def _draw_names(self, painter: QPainter, area: QRectF, cells: Cells) -> None:
        height, font = area.height() / len(cells.names), fixed_font(11)
        for line, name in enumerate(cells.names):
            width = min(QFontMetricsF(font).horizontalAdvance(name) + 8, area.width())
            box = QRectF(area.left(), area.top() + line * height + 1, width, scaled(NAMED_FROM) - 2)
            painter.fillRect(box, self.session.theme.tint("panel", 0.75))
            draw(painter, box.adjusted(3, 0, 0, 0), [Span(name, "text", fixed=True)], self.session.theme, size=11)

    def _draw_curves(self, painter: QPainter, area: QRectF, runs: Sequence[Cells], line: int) -> None:
        """One thing's values over the deep rows, joined, on a log axis; those of another run dimmed behind."""
        theme, across = self.session.theme, self.across
        curves = []
        for cells in runs:
            drawable = np.isfinite(cells.values[line]) & (cells.values[line] > 0)
            curves.append((cells.positions[drawable], cells.values[line][drawable]))
        seen = np.concatenate([values[(at >= across.first) & (at <= across.last)] for at, values in curves])
        seen = seen if len(seen) else np.concatenate([values for _, values in curves])
        low, high = (float(seen.min()), float(seen.max())) if len(seen) else (1.0, 0.0)
        up = fitted(low, high, 0.0, True, area.top() + 4, area.bottom())
        draw_grid(painter, up, area, value_ticks(up, scaled(38)), theme)
        painter.setClipRect(area)
        self.draw_incidents(painter, area)
        for (positions, values), colour in reversed(
            list(zip(curves, (theme["norm"], theme.tint("norm", DIMMED)), strict=False))
        ):
            draw_joined(painter, across.pixels(positions), up.pixels(values), QPen(colour, 1))
        painter.setClipping(False)

    def _forget_choice(self) -> None:
        self.chosen = self._under = None
        self._below = False
