"""The line at the top of a panel: its title, and what is said of one row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from spikeview.ui.fonts import scaled
from spikeview.ui.painted import Painted
from spikeview.ui.session import Session
from spikeview.ui.spans import Span, draw, width

HEIGHT = 26
RADIUS = 6.0
INSET = 11
APART = 12
DOTS = Span(" …")


class PanelHead(Painted):
    """A widget of its own, so that a moving cursor has only this line and the cursor painted.

    `title` and `told` are asked for what stands left and right each time it is painted.
    """

    def __init__(
        self,
        session: Session,
        title: Callable[[], Sequence[Span]],
        told: Callable[[], Sequence[Span]],
        parent: QWidget,
    ) -> None:
        super().__init__(session, parent)
        self._panel, self._title, self._says = parent, title, told
        self.setAccessibleName(parent.accessibleName())
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setFixedHeight(scaled(HEIGHT))

    def paint(self, painter: QPainter) -> None:
        theme = self.session.theme
        painter.fillRect(self.rect(), theme["window"])
        if self.session.shown is None:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme["panel"])
        below = 0.0 if self._panel.height() <= self.height() else 2 * RADIUS
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0, 0, 0, below), RADIUS, RADIUS)
        if self._panel.hasFocus():
            painter.fillRect(QRectF(0, RADIUS, 3, self.height() - 2 * RADIUS), theme["accent"])
        area = QRectF(INSET, 0, self.width() - 2 * INSET, self.height())
        title = self._title()
        draw(painter, area, title, theme)
        beside = area.adjusted(width(title) + APART, 0, 0, 0)
        draw(painter, beside, fitting(self._says(), beside.width()), theme, right=True)


def fitting(spans: Sequence[Span], room: float) -> Sequence[Span]:
    """As many whole spans as there is room for: a value is not cut, and without it what names it says nothing.

    All of them where not even one value fits.
    """
    if width(spans) <= room:
        return spans
    kept = list(spans)
    while kept and (width([*kept, DOTS]) > room or not _is_value(kept[-1])):
        kept.pop()
    return [*kept, DOTS] if kept else spans


def _is_value(span: Span) -> bool:
    """A number, or the word in its place; neither a name nor the line of a curve."""
    return any(each.isdigit() or (span.fixed and each.isalpha()) for each in span.text)
