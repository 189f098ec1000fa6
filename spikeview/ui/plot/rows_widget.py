"""What every widget along the step axis shares: the gutter, and the mouse that moves, zooms and inspects."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QWidget

from spikeview.ui import visible
from spikeview.ui.fonts import scaled
from spikeview.ui.painted import Painted
from spikeview.ui.plot.scale import Across
from spikeview.ui.session import Session

GUTTER = 44
MARGIN = 11
CLICK = 4.0
NOTCH = 0.8


class RowsWidget(Painted):
    """Hover reads a row, a click inspects it, a drag pans, a drag of the cursor line scrubs, the wheel zooms."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(session, parent)
        self.setMouseTracking(True)
        self._pressed: QPointF | None = None
        self._range_pressed = (0.0, 1.0)
        self._dragging = ""
        session.hover_changed.connect(self.update)
        session.cursor_changed.connect(self.update)

    @property
    def across(self) -> Across:
        first, last = self.session.range
        left = scaled(GUTTER)
        return Across(first, last, left, max(1.0, self.width() - left - MARGIN))

    def row_at(self, point: QPointF) -> int:
        """The position of the row under the mouse."""
        row = round(self.across.position(point.x()))
        return min(max(row, 0), len(self.session.run) - 1)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self.session.shown is None or event.button() != Qt.MouseButton.LeftButton:
            return
        self._pressed, self._range_pressed = event.position(), self.session.range
        on_cursor = abs(self.across.pixel(self.session.cursor) - event.position().x()) < CLICK
        self._dragging = "cursor" if on_cursor else ""

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self.session.shown is None:
            return
        point = event.position()
        self.session.hover(self.row_at(point))
        if self._pressed is None:
            near = abs(self.across.pixel(self.session.cursor) - point.x()) < CLICK
            self.setCursor(Qt.CursorShape.SplitHCursor if near else Qt.CursorShape.CrossCursor)
            return
        moved = point.x() - self._pressed.x()
        if abs(moved) > CLICK and not self._dragging:
            self._dragging = "range"
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
        if self._dragging == "range":
            first, last = self._range_pressed
            rows = moved * (last - first) / self.across.width
            self.session.show_range(first - rows, last - rows)
        elif self._dragging == "cursor" and abs(moved) > CLICK:
            self.session.move(self.row_at(point) - self.session.cursor)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._pressed is not None and abs(event.position().x() - self._pressed.x()) <= CLICK:
            self.session.inspect_row(self.row_at(event.position()))
        self._pressed, self._dragging = None, ""

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.session.show_all()

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.session.shown is None:
            return
        turned = event.angleDelta()
        first, last = self.session.range
        if abs(turned.x()) > abs(turned.y()):
            shift = -turned.x() / 120 * 0.1 * (last - first)
            self.session.show_range(first + shift, last + shift)
        else:
            centre = self.across.position(event.position().x())
            self.session.show_range(*visible.zoomed((first, last), centre, NOTCH ** (turned.y() / 120)))
        event.accept()

    def leaveEvent(self, event: QEvent) -> None:
        self.session.hover(None)
