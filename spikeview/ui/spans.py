"""Pieces of text of one line, each with the role of its colour: drawn by a painter or given to a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontDatabase, QPainter

from spikeview.format import printable
from spikeview.ui.fonts import advance, fixed_font, interface_font, metrics
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
    typeset = [(span, *_typeset(span, size)) for span in spans if span.text]
    x = max(area.left(), area.right() - sum(width for *_, width in typeset)) if right else area.left()
    baseline = area.center().y() + metrics(interface_font(size)).capHeight() / 2
    for span, text, font, width in typeset:
        room = area.right() - x
        if room <= 0:
            return
        if width > room + 0.5:
            text = metrics(font).elidedText(text, Qt.TextElideMode.ElideRight, room)
        painter.setFont(font)
        painter.setPen(theme[span.role])
        painter.drawText(QPointF(x, baseline), text)
        x += width


def width(spans: Sequence[Span], size: float = 12) -> float:
    """How wide a line of spans is, in pixels."""
    return sum(_typeset(span, size)[2] for span in spans)


@lru_cache(maxsize=1024)
def _typeset(span: Span, size: float) -> tuple[str, QFont, float]:
    """What is drawn of a span, in which font, and how wide it is."""
    text, font = printable(span.text), span.font(size)
    return text, font, advance(font, text)


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
