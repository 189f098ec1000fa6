"""The mouse on a panel's head: a drag up or down takes the panel along, until it is let go or given up."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, Qt, Signal
from PySide6.QtGui import QHideEvent, QMouseEvent
from PySide6.QtWidgets import QApplication

from spikeview.ui.panels.panel import Panel
from spikeview.ui.plot.rows_widget import RowsWidget


class HeadDrag(RowsWidget):
    """The head is what lies above `scrolls_above`. A right click gives a drag up, and so does `give_up_drag`."""

    panel: Panel
    head_dragged = Signal(str, QPoint)  # on the screen
    head_dropped = Signal(str)
    drag_given_up = Signal()

    def drag_at(self, point: QPointF, pans: bool) -> str:
        """On the head also `head?`, which becomes `head` once the mouse has moved, and `given up` after that."""
        return "head?" if self._on_head(point) and not pans else super().drag_at(point, pans)

    def give_up_drag(self) -> bool:
        """Whether there was one; what the mouse does until its button is up then has no effect."""
        if self._dragging != "head":
            return False
        self._dragging = "given up"
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.drag_given_up.emit()
        return True

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.RightButton:
            self.give_up_drag()
        elif self._pressed is None:
            super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        point = event.position()
        if self._pressed is not None and self._dragging in ("head?", "head", "given up"):
            self._drag_head(point.y() - self._pressed.y(), event.globalPosition().toPoint())
        elif self._pressed is None and self.session.shown is not None and self._on_head(point):
            self.session.hover(self.row_at(point))
            self.setCursor(Qt.CursorShape.OpenHandCursor)
        else:
            super().mouseMoveEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._dragging not in ("head", "given up"):
            super().mouseReleaseEvent(event)
            return
        if event.button() != Qt.MouseButton.LeftButton:
            return
        dropped = self._dragging == "head"
        self._pressed, self._dragging = None, ""
        self.setCursor(Qt.CursorShape.OpenHandCursor)
        if dropped:
            self.head_dropped.emit(self.panel.id)

    def hideEvent(self, event: QHideEvent) -> None:
        """The button goes up where nobody hears of it."""
        self.give_up_drag()
        self._pressed, self._dragging = None, ""

    def _on_head(self, point: QPointF) -> bool:
        return point.y() < self.scrolls_above

    def _drag_head(self, moved: float, at: QPoint) -> None:
        if self._dragging == "head?" and abs(moved) >= QApplication.startDragDistance():
            self._dragging = "head"
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
        if self._dragging == "head":
            self.head_dragged.emit(self.panel.id, at)
