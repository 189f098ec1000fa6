"""The strip of marks at a panel's top: each kind of bad row with its own shape, in a lane of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF

from spikeview.analysis.envelope import NAN, NEG_INF, NOT_POSITIVE, POS_INF, Envelope
from spikeview.ui.panels.panel import Plotted
from spikeview.ui.plot.scale import Across
from spikeview.ui.theme import Theme

LANE = 12.0
APART = 8


@dataclass(frozen=True)
class Mark:
    """One kind of bad row: the text of its legend and the role of its colour; its shape is in `draw_mark`."""

    id: str
    text: str
    role: str


NAN_MARK = Mark("nan", "NaN", "bad")
INF_MARK = Mark("inf", "Inf", "bad")
SKIPPED_MARK = Mark("skipped", "skipped", "warn")
LOW_MARK = Mark("low", "≤ 0", "warn")
MARKS = (NAN_MARK, INF_MARK, SKIPPED_MARK, LOW_MARK)


def lanes(plotted: Plotted) -> tuple[Mark, ...]:
    """The kinds of mark this run has anywhere in these series, so that a panel's lanes stay while it is moved."""
    seen = int(np.bitwise_or.reduce([np.bitwise_or.reduce(curve.flags, initial=0) for curve in plotted.curves]))
    found = [mark for mark, bits in _BITS if seen & int(bits)]
    return tuple(mark for mark in MARKS if mark in found or (mark is SKIPPED_MARK and len(plotted.skipped)))


_BITS = ((NAN_MARK, NAN), (INF_MARK, POS_INF | NEG_INF), (LOW_MARK, NOT_POSITIVE))


def draw_marks(
    painter: QPainter, plotted: Plotted, columns: Sequence[Envelope], across: Across, top: float, theme: Theme
) -> None:
    """One lane for each kind. Every bad column has its tick; shapes stand no closer than they can be told apart."""
    flags = np.bitwise_or.reduce([column.flags for column in columns])
    bits = dict(_BITS)
    for lane, mark in enumerate(lanes(plotted)):
        found = _skipped(plotted, across) if mark is SKIPPED_MARK else np.flatnonzero(flags & bits[mark])
        y = top + LANE * (lane + 0.5)
        shaped = _apart(found)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        for column in shaped:
            draw_mark(painter, mark, QPointF(across.left + column + 0.5, y), theme)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        if len(shaped) < len(found):
            for run in np.split(found, np.flatnonzero(np.diff(found) > 1) + 1):
                area = QRectF(across.left + float(run[0]), y + LANE / 2 - 1, len(run), 1)
                painter.fillRect(area, theme[mark.role])


def draw_mark(painter: QPainter, mark: Mark, centre: QPointF, theme: Theme, size: float = 4.0) -> None:
    """◆ NaN, ▲ Inf, × skipped, ▽ zero or below."""
    x, y, colour = centre.x(), centre.y(), theme[mark.role]
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    if mark is NAN_MARK:
        painter.drawPolygon(
            QPolygonF([QPointF(x, y - size), QPointF(x + size, y), QPointF(x, y + size), QPointF(x - size, y)])
        )
    elif mark is INF_MARK:
        up = size * 0.9
        painter.drawPolygon(QPolygonF([QPointF(x, y - up), QPointF(x + size, y + up), QPointF(x - size, y + up)]))
    elif mark is SKIPPED_MARK:
        arm = size * 0.75
        painter.setPen(QPen(colour, 1.6))
        painter.drawLine(QPointF(x - arm, y - arm), QPointF(x + arm, y + arm))
        painter.drawLine(QPointF(x - arm, y + arm), QPointF(x + arm, y - arm))
    else:
        painter.setPen(QPen(colour, 1.2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        low = size * 0.8
        painter.drawPolygon(QPolygonF([QPointF(x - size, y - low), QPointF(x + size, y - low), QPointF(x, y + low)]))


def _skipped(plotted: Plotted, across: Across) -> NDArray[np.int64]:
    begin, end = np.searchsorted(plotted.skipped, [np.ceil(across.first), np.ceil(across.last)])
    pixels = across.pixels(plotted.skipped[begin:end]) - across.left
    return np.unique(np.clip(pixels, 0, max(0, int(across.width) - 1)).astype(np.int64))


def _apart(columns: NDArray[np.int64]) -> list[int]:
    """Those of the columns, from the first, that stand at least a shape apart."""
    chosen: list[int] = []
    for column in columns.tolist():
        if not chosen or column - chosen[-1] >= APART:
            chosen.append(column)
    return chosen
