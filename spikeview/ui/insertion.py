"""Where a panel that is dragged would go among the others, as a line between them."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from spikeview.ui.painted import Painted
from spikeview.ui.session import Session

THICK = 4


def places(at: int, y: int, boxes: Sequence[QRect]) -> int:
    """How many places further down the panel `at` goes when it is let go at height `y`; each has its box."""
    above = sum(box.center().y() < y for box in boxes)
    return above - at - (above > at)


class InsertionLine(Painted):
    """Lies over the panels; `by` is how many places down the dragged one would go, and there is no line for 0."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(session, parent)
        self._ground = parent
        self.setAccessibleName("place of the dragged panel")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.by = 0
        self.hide()

    def point(self, at: int, y: int, panels: Sequence[QWidget]) -> None:
        """For the dragged one, `at` among the panels on the screen, with the mouse at height `y` of the parent."""
        boxes = [QRect(panel.mapTo(self._ground, QPoint(0, 0)), panel.size()) for panel in panels]
        self.by = places(at, y, boxes)
        if self.by == 0:
            self.hide()
            return
        box = boxes[at + self.by]
        gap = box.top() - THICK - 1 if self.by < 0 else box.bottom() + 2
        self.setGeometry(box.left(), min(max(gap, 0), self._ground.height() - THICK), box.width(), THICK)
        self.raise_()
        self.show()

    def put_away(self) -> None:
        self.by = 0
        self.hide()

    def paint(self, painter: QPainter) -> None:
        painter.fillRect(self.rect(), self.session.theme["accent"])
