"""The few lines of an axis of values, and their labels in the gutter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from spikeview.ui.fonts import fixed_font
from spikeview.ui.plot.curve import draw_lines
from spikeview.ui.plot.scale import Up, value_label
from spikeview.ui.theme import Theme


def draw_grid(
    painter: QPainter, up: Up, area: QRectF, ticks: Sequence[float], theme: Theme, signed: bool = False
) -> None:
    """A level line at each tick, its text left of the area."""
    if not ticks:
        return
    heights = np.round(up.pixels(np.array(ticks, dtype=np.float64))) + 0.5
    left, right = np.full(len(ticks), area.left()), np.full(len(ticks), area.right())
    draw_lines(painter, np.stack([left, heights, right, heights], axis=1), QPen(theme["grid"], 1))
    painter.setFont(fixed_font(11))
    for value, y in zip(ticks, heights.tolist(), strict=True):
        draw_label(painter, y, area.left(), value_label(value, ticks, up.log, signed), theme)


def draw_label(painter: QPainter, y: float, right: float, text: str, theme: Theme) -> None:
    """A text in the gutter, beside what stands at a height."""
    painter.setPen(theme["muted"])
    aligned = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
    painter.drawText(QRectF(0, y - 9, right - 7, 18), aligned, text)
