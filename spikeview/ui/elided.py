"""One line of text that ends where there is no room."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from spikeview.ui.fonts import scaled
from spikeview.ui.painted import Painted
from spikeview.ui.session import Session
from spikeview.ui.spans import Span, draw


class ElidedLine(Painted):
    """One line of spans that ends in an ellipsis where there is no room; its hint can tell the rest."""

    def __init__(self, spans: Sequence[Span], session: Session, parent: QWidget) -> None:
        super().__init__(session, parent)
        self.setFixedHeight(scaled(16))
        self.show_spans(spans)

    def show_spans(self, spans: Sequence[Span]) -> None:
        """Take the place of what it said before."""
        self._spans = spans
        self.setAccessibleName("".join(span.text for span in spans))
        self.update()

    def paint(self, painter: QPainter) -> None:
        draw(painter, QRectF(self.rect()), self._spans, self.session.theme, size=11.5)
