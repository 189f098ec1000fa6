"""The bar at the bottom: the cursor, the keys or the last message, the legend of marks."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QWidget

from spikeview.format import printable
from spikeview.ui.fonts import interface_font, scaled
from spikeview.ui.painted import Painted
from spikeview.ui.plot.marks import MARKS, draw_mark
from spikeview.ui.session import Session
from spikeview.ui.spans import Span, draw
from spikeview.ui.values import step_label

KEYS = ("? keys", "← → row", "N P incident", "E export", "⇧ ten", "C compare", "F follow")
APART = "     "


class Foot(QFrame):
    """The last message takes the place of the keys until the next one."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self.setObjectName("foot")
        self.setFixedHeight(scaled(26))
        self._cursor, self._told, self._legend = QLabel(self), Told(self), Legend(session, self)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 0, 14, 0)
        row.setSpacing(20)
        row.addWidget(self._cursor)
        row.addWidget(self._told, 1)
        row.addWidget(self._legend)
        session.opened.connect(self._begin_anew)
        session.grown.connect(self._fill)
        session.follow.announced.connect(self._tell)
        session.cursor_changed.connect(self._fill)
        session.hover_changed.connect(self._fill)
        session.told.connect(self._tell)

    @property
    def text(self) -> str:
        return self._told.message

    def _begin_anew(self) -> None:
        """What was said of another run does not hold for this one."""
        self._told.say("")
        self._fill()

    def _tell(self, text: str) -> None:
        self._told.say(printable(text))

    def _fill(self) -> None:
        session = self._session
        if session.shown is None:
            return
        if session.hovered is not None:
            self._cursor.setText(f"under the mouse {step_label(session.run, session.hovered)}")
        else:
            self._cursor.setText(f"cursor {'start' if session.cursor < 0 else step_label(session.run, session.cursor)}")


class Told(QLabel):
    """The last message; where there is none the keys, as many as there is room for."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._message = ""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.setAccessibleName("Status")
        self.setTextFormat(Qt.TextFormat.PlainText)

    def say(self, message: str) -> None:
        """Take the place of what was said; nothing gives it back to the keys."""
        self._message = message
        self.setToolTip(message)
        self._fit()

    @property
    def message(self) -> str:
        """The whole of what is said."""
        return self._message or self.text()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        elided = self.fontMetrics().elidedText(self._message, Qt.TextElideMode.ElideRight, self.width())
        self.setText(elided if self._message else self._keys())

    def _keys(self) -> str:
        for many in range(len(KEYS), 1, -1):
            text = APART.join([*KEYS[1:many], KEYS[0]])
            if self.fontMetrics().horizontalAdvance(text) <= self.width():
                return text
        return KEYS[0]


class Legend(Painted):
    """The shapes of the marks with their names."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(session, parent)
        self.setAccessibleName("Legend of marks")
        self.setAccessibleDescription(
            "diamond NaN, triangle up Inf, triangle down -Inf, cross skipped, ring zero, hollow triangle negative; "
            "larger and fainter: of the run compared with"
        )
        self.setToolTip(
            "◆ NaN   ▲ Inf   ▼ −Inf   × a step that was skipped   ○ zero and ▽ negative on a log axis   ø not recorded"
            "\nlarger, hollow and fainter: of the run that is compared with"
        )
        session.theme_changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(
            round(sum(self._widths()) + scaled(16) * len(MARKS) + self._measure("ø not recorded")) + 4, scaled(20)
        )

    def paint(self, painter: QPainter) -> None:
        theme = self.session.theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        x, middle = 0.0, self.height() / 2
        for mark, width in zip(MARKS, self._widths(), strict=True):
            draw_mark(painter, mark, QPointF(x + 5, middle), theme)
            draw(painter, QRectF(x + 13, 0, width, self.height()), [Span(mark.text)], theme, size=11)
            x += width + scaled(16)
        draw(painter, QRectF(x, 0, self.width() - x, self.height()), [Span("ø not recorded")], theme, size=11)

    def _widths(self) -> list[float]:
        return [self._measure(mark.text) + 14 for mark in MARKS]

    def _measure(self, text: str) -> float:
        return QFontMetricsF(interface_font(11)).horizontalAdvance(text)
