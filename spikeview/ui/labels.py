"""The few kinds of label the columns are made of."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QLayout, QWidget

from spikeview.ui.fonts import scaled
from spikeview.ui.session import Session
from spikeview.ui.spans import Span, draw


def heading(text: str, parent: QWidget) -> QLabel:
    """A section's name, in small capitals."""
    label = QLabel(text.upper(), parent)
    label.setObjectName("heading")
    label.setWordWrap(True)
    label.setAccessibleName(text)
    return label


def muted(text: str, parent: QWidget) -> QLabel:
    """Text of second importance, which wraps."""
    label = QLabel(text, parent)
    label.setObjectName("muted")
    label.setWordWrap(True)
    return label


class ElidedLine(QWidget):
    """One line of spans that ends in an ellipsis where there is no room; its hint can tell the rest."""

    def __init__(self, spans: Sequence[Span], session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self.setFixedHeight(scaled(16))
        self.show_spans(spans)

    def show_spans(self, spans: Sequence[Span]) -> None:
        """Take the place of what it said before."""
        self._spans = spans
        self.setAccessibleName("".join(span.text for span in spans))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        draw(painter, QRectF(self.rect()), self._spans, self._session.theme, size=11.5)
        painter.end()


def placed(grid: QGridLayout, row: int, left: QWidget, right: QWidget) -> None:
    """A row of two, shown at once: left to itself Qt shows them an event later, and the column is measured without."""
    for column, widget in enumerate((left, right)):
        grid.addWidget(widget, row, column, Qt.AlignmentFlag.AlignTop if column == 0 else Qt.AlignmentFlag(0))
        widget.show()


def cleared(layout: QLayout) -> None:
    """Take everything out of a layout and away from the screen."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()
