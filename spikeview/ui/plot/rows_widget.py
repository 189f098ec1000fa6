"""What every widget along the step axis shares: the gutter, and the mouse that moves, zooms and inspects."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QMouseEvent, QPainter, QPen, QWheelEvent
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
    """Hover reads a row, a click inspects it, the wheel zooms.

    A drag zooms to what it spans; of the cursor line it scrubs, with Shift or the middle button it pans.
    """

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(session, parent)
        self.setMouseTracking(True)
        self._pressed: QPointF | None = None
        self._range_pressed = (0.0, 1.0)
        self._dragging = ""
        self._dragged_to = 0.0

    scrolls_above = 0.0  # where the wheel is left to what the widget lies in

    @property
    def whole(self) -> tuple[float, float]:
        """The range that the width stands for."""
        return self.session.range

    @property
    def across(self) -> Across:
        left = scaled(GUTTER)
        return Across(*self.whole, left, max(1.0, self.width() - left - MARGIN))

    def row_at(self, point: QPointF) -> int:
        """The position of the row under the mouse."""
        row = round(self.across.position(point.x()))
        return min(max(row, 0), len(self.session.run) - 1)

    def clicked(self, point: QPointF) -> None:
        """What a click without a drag does."""
        self.session.inspect_row(self.row_at(point))

    def draw_selection(self, painter: QPainter, top: float, bottom: float) -> None:
        """The span that a drag will zoom to."""
        if self._dragging != "zoom" or self._pressed is None:
            return
        left, right = sorted((self._pressed.x(), self._dragged_to))
        area = QRectF(left, top, right - left, bottom - top)
        painter.fillRect(area, self.session.theme.tint("accent", 0.22))
        painter.setPen(QPen(self.session.theme["accent"], 1))
        painter.drawRect(area)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        left, middle = (event.button() == each for each in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton))
        if self.session.shown is None or not (left or middle):
            return
        self._pressed, self._range_pressed = event.position(), self.session.range
        self._dragging = self.drag_at(event.position(), middle or _shifted(event))

    def drag_at(self, point: QPointF, pans: bool) -> str:
        """What a drag from here does: `pan`, `scrub`, or `zoom?`, which becomes `zoom` once the mouse has moved."""
        if pans:
            return "pan"
        return "scrub" if self._near_cursor(point) else "zoom?"

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self.session.shown is None:
            return
        point = event.position()
        self.session.hover(self.row_at(point))
        if self._pressed is None:
            self.setCursor(Qt.CursorShape.SplitHCursor if self._near_cursor(point) else Qt.CursorShape.CrossCursor)
            return
        moved = point.x() - self._pressed.x()
        if abs(moved) <= CLICK and self._dragging != "zoom":
            return
        if self._dragging == "pan":
            self.pan(moved)
        elif self._dragging == "scrub":
            self.session.move(self.row_at(point) - self.session.cursor)
        else:
            self._dragging, self._dragged_to = "zoom", self._inside(point.x())
            self.update()

    def pan(self, moved: float) -> None:
        """Move what is in sight by so many pixels from where it was when the button went down."""
        self.setCursor(Qt.CursorShape.ClosedHandCursor)
        first, last = self._range_pressed
        rows = moved * (last - first) / self.across.width
        self.session.show_range(first - rows, last - rows, gesture="pan")

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._pressed is None:
            return
        pressed, dragging = self._pressed, self._dragging
        self._pressed, self._dragging = None, ""
        if abs(event.position().x() - pressed.x()) <= CLICK:
            self.clicked(event.position())
        elif dragging == "zoom":
            across = self.across
            ends = across.position(pressed.x()), across.position(self._dragged_to)
            self.session.show_range(min(ends), max(ends))
        self.update()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.session.show_all()

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.session.shown is None or event.position().y() < self.scrolls_above:
            event.ignore()
            return
        turned = event.angleDelta()
        first, last = self.session.range
        if abs(turned.x()) > abs(turned.y()):
            shift = -turned.x() / 120 * 0.1 * (last - first)
            self.session.show_range(first + shift, last + shift, gesture="pan")
        else:
            centre = self.across.position(event.position().x())
            zoomed = visible.zoomed((first, last), centre, NOTCH ** (turned.y() / 120))
            self.session.show_range(*zoomed, gesture="wheel")
        event.accept()

    def leaveEvent(self, event: QEvent) -> None:
        self.session.hover(None)

    def _inside(self, x: float) -> float:
        across = self.across
        return min(max(x, across.left), across.left + across.width)

    def _near_cursor(self, point: QPointF) -> bool:
        return abs(self.across.pixel(self.session.cursor) - point.x()) < CLICK


def _shifted(event: QMouseEvent) -> bool:
    return bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
