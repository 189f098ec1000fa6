"""Pieces of text of one line, each with the role of its colour: drawn by a painter or given to a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontDatabase, QFontMetricsF, QPainter

from spikeview.format import printable
from spikeview.ui.fonts import fixed_font, interface_font
from spikeview.ui.theme import Theme


@dataclass(frozen=True)
class Span:
    """Some text in one colour; `fixed` sets it in the fixed-width font."""

    text: str
    role: str = "muted"
    fixed: bool = False
    bold: bool = False

    def font(self, size: float) -> QFont:
        return fixed_font(size, self.bold) if self.fixed else interface_font(size, self.bold)


def draw(
    painter: QPainter, area: QRectF, spans: Sequence[Span], theme: Theme, right: bool = False, size: float = 12
) -> None:
    """One line of spans in the area, from its left or towards its right; the last span that does not fit is elided."""
    spans = [replace(span, text=printable(span.text)) for span in spans]
    widths = [QFontMetricsF(span.font(size)).horizontalAdvance(span.text) for span in spans]
    x = max(area.left(), area.right() - sum(widths)) if right else area.left()
    baseline = area.center().y() + QFontMetricsF(interface_font(size)).capHeight() / 2
    for span, width in zip(spans, widths, strict=True):
        room = area.right() - x
        if room <= 0:
            return
        font = span.font(size)
        text = (
            span.text
            if width <= room + 0.5
            else QFontMetricsF(font).elidedText(span.text, Qt.TextElideMode.ElideRight, room)
        )
        painter.setFont(font)
        painter.setPen(theme[span.role])
        painter.drawText(QPointF(x, baseline), text)
        x += width


def html(spans: Sequence[Span], theme: Theme) -> str:
    """The same line for a label."""
    family = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()
    parts = []
    for span in spans:
        style = f"color:{theme[span.role].name()};"
        style += f"font-family:'{family}';" if span.fixed else ""
        style += "font-weight:600;" if span.bold else ""
        parts.append(f'<span style="{style}">{escape(printable(span.text))}</span>')
    return "".join(parts)
