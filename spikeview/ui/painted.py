"""What every widget that draws itself goes through: a fault in drawing is told of, and harms nothing else."""

from __future__ import annotations

import logging

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from spikeview.ui.session import Session
from spikeview.ui.spans import Span, draw

log = logging.getLogger(__name__)


class Painted(QWidget):
    """Draws itself in `paint`. An exception that left a paint event would leave its painter open, and Qt would crash.

    It is logged once, and said in one line in the place of what could not be drawn.
    """

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self.session = session
        self._told: set[str] = set()

    def paint(self, painter: QPainter) -> None:
        """Draw the whole widget."""
        raise NotImplementedError

    def paintEvent(self, event: QPaintEvent) -> None:
        try:
            with QPainter(self) as painter:
                self.paint(painter)
        except Exception as error:  # noqa: BLE001 - whatever it was, the window goes on
            self._tell(error)

    def _tell(self, error: Exception) -> None:
        name = self.accessibleName() or type(self).__name__
        fault = f"{name} not drawn: {type(error).__name__}: {error}"
        if fault not in self._told:
            self._told.add(fault)
            log.error("%s could not be drawn", name, exc_info=error)
        theme = self.session.theme
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), theme["window"])
            draw(painter, QRectF(self.rect()).adjusted(11, 0, -11, 0), [Span(fault, "bad")], theme)
