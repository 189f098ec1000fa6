"""A picture of what a widget draws, kept until something has changed."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtGui import QColor, QPainter, QPixmap
from PySide6.QtWidgets import QWidget


class KeptPicture:
    """What does not follow the mouse is drawn once, at the screen's own resolution, and copied from then on."""

    def __init__(self) -> None:
        self._pixmap: QPixmap | None = None

    def forget(self) -> None:
        self._pixmap = None

    def draw(self, painter: QPainter, widget: QWidget, ground: QColor, paint: Callable[[QPainter], None]) -> None:
        """Draw the picture of a widget's size; where there is none yet, `paint` makes it on `ground`."""
        if self._pixmap is None:
            ratio = widget.devicePixelRatioF()
            pixmap = QPixmap(widget.size() * ratio)
            pixmap.setDevicePixelRatio(ratio)
            pixmap.fill(ground)
            with QPainter(pixmap) as inside:
                paint(inside)
            self._pixmap = pixmap
        painter.drawPixmap(0, 0, self._pixmap)
