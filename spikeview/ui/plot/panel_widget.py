"""One panel on the screen: its ground, its head, the incidents behind its plot and the cursor before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QContextMenuEvent, QFocusEvent, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from spikeview.ui.fonts import scaled
from spikeview.ui.panels.panel import Panel
from spikeview.ui.panels.plotted import Plotted
from spikeview.ui.picture import KeptPicture
from spikeview.ui.plot.bands import draw_bands
from spikeview.ui.plot.curve import draw_lines
from spikeview.ui.plot.head_drag import HeadDrag
from spikeview.ui.plot.panel_head import HEIGHT, RADIUS, PanelHead
from spikeview.ui.session import Session
from spikeview.ui.spans import Span

LEAST = 84


class PanelWidget(HeadDrag):
    """Draws a panel for the rows in sight; what is in the plot is for those that are made from it.

    What does not follow the mouse is kept as a picture, and of what does only the places that changed are painted.
    """

    menu_wanted = Signal(str, object)

    def __init__(self, panel: Panel, session: Session, parent: QWidget) -> None:
        super().__init__(session, parent)
        self.panel = panel
        self.setAccessibleName(f"{panel.title} plot")
        self.setAccessibleDescription(panel.help)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.scrolls_above = scaled(HEIGHT)
        self._picture = KeptPicture()
        self._lines_at: list[float] = []
        self._head = PanelHead(session, self._title, self._says, self)
        for signal in (session.incident_changed, session.theme_changed, session.comparison.changed):
            signal.connect(self.redraw)
        session.range_changed.connect(self._redraw_plot)
        for signal in (session.opened, session.grown, session.drawn):
            signal.connect(self._on_series)
        for signal in (session.hover_changed, session.cursor_changed):
            signal.connect(self._move_lines)

    @property
    def plotted(self) -> Plotted | None:
        return self.session.series.of(self.panel.id)

    @property
    def reason(self) -> str:
        """Why there is nothing to show, empty where there is or will be."""
        return "" if self.session.shown is None else self.session.rows.reasons[self.panel.id]

    @property
    def plot_area(self) -> QRectF:
        across, top = self.across, scaled(HEIGHT)
        return QRectF(across.left, top, across.width, self.height() - top - 8)

    def draw_plot(self, painter: QPainter, area: QRectF) -> None:
        """Draw what stands between the ground and the cursor."""
        raise NotImplementedError

    def head(self, row: int) -> Sequence[Span]:
        """What is said of one row, at the right of the head."""
        return self.panel.head(self.session.view, row)

    def paint(self, painter: QPainter) -> None:
        if self.session.shown is None:
            return
        self._picture.draw(painter, self, self.session.theme["window"], self._draw_panel)
        if self.plotted is not None:
            self._draw_lines(painter)
            self.draw_selection(painter, self.plot_area.top(), self.plot_area.bottom())

    def redraw(self) -> None:
        self._redraw_plot()
        self._head.update()

    def _redraw_plot(self) -> None:
        """All but the head, which tells of one row wherever the range is."""
        self._picture.forget()
        self.update(QRect(0, self._head.height(), self.width(), self.height()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._head.resize(self.width(), self._head.height())
        self.redraw()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._head.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._head.update()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if self._pressed is None:  # else it gives a drag up
            self.menu_wanted.emit(self.panel.id, event.globalPos())

    def sizeHint(self) -> QSize:
        return QSize(scaled(500), scaled(16) * self.panel.weight)

    def minimumSizeHint(self) -> QSize:
        return QSize(scaled(200), scaled(HEIGHT if self.reason else LEAST))

    def _on_series(self) -> None:
        """A panel that has nothing to show keeps only its head."""
        self.setMaximumHeight(scaled(HEIGHT) if self.reason else 16_777_215)
        self.updateGeometry()
        self.redraw()

    def _draw_panel(self, painter: QPainter) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.session.theme["panel"])
        painter.drawRoundedRect(QRectF(self.rect()), RADIUS, RADIUS)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        if self.plotted is not None:
            self.draw_plot(painter, self.plot_area)

    def draw_incidents(self, painter: QPainter, area: QRectF) -> None:
        """The incidents of this optimizer as bands, the selected one stronger."""
        draw_bands(painter, self.session.bands, self.across, area, self.session.theme, self.session.incident)

    def _lines(self) -> list[tuple[float, QColor, tuple[int, int]]]:
        """The transition dashed, the row it led to dotted where they can be told apart, the mouse as a thin line."""
        across, theme, session = self.across, self.session.theme, self.session
        lines = [(across.pixel(session.cursor), theme["text"], (4, 3))]
        if session.observed is not None and across.rows_per_pixel < 0.2:
            lines.append((across.pixel(session.observed), theme.tint("text", 0.6), (1, 3)))
        if session.hovered is not None:
            lines.append((across.pixel(session.hovered), theme.tint("muted", 0.6), (1, 0)))
        return lines

    def _move_lines(self) -> None:
        """Only the head and where lines went or came; one rectangle, for Qt takes long over a region of several."""
        if self.session.shown is None:
            return
        moved = {round(x) for x, _, _ in self._lines()} ^ {round(x) for x in self._lines_at}
        seen = [x for x in moved if 0 <= x <= self.width()]
        if seen:
            self.update(QRect(min(seen) - 2, self._head.height(), max(seen) - min(seen) + 5, self.height()))
        self._head.update()

    def _draw_lines(self, painter: QPainter) -> None:
        area, lines = self.plot_area, self._lines()
        self._lines_at = [x for x, _, _ in lines]
        for x, colour, dash in lines:
            if area.left() - 1 <= x <= area.right() + 1:
                _draw_upright(painter, x, area, colour, dash)

    def _says(self) -> Sequence[Span]:
        if self.reason or self.plotted is None:
            return [Span(self.reason or "drawing …")]
        hovered = self.session.hovered
        return self.head(self.session.inspected if hovered is None else hovered)

    def _title(self) -> Sequence[Span]:
        return [Span(self.panel.title, "muted" if self.reason else "text", bold=True), *self.subtitle()]

    def subtitle(self) -> list[Span]:
        """What stands behind the title."""
        return []


def _draw_upright(painter: QPainter, x: float, area: QRectF, colour: QColor, dash: tuple[int, int]) -> None:
    """An upright line in dashes: as lines of their own, for Qt takes long over a pen's pattern."""
    at = round(x) + 0.5
    tops = np.arange(area.top(), area.bottom(), sum(dash))
    draw_lines(painter, np.stack([at + 0 * tops, tops, at + 0 * tops, tops + dash[0]], axis=1), QPen(colour, 1))
