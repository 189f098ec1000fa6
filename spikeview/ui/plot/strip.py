"""What goes with a curve: the limit it is held to, and a factor as a strip below."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QLineF, QRectF
from PySide6.QtGui import QColor, QImage, QPainter, QPen

from spikeview.analysis.envelope import Envelope
from spikeview.analysis.pyramid import Pyramid
from spikeview.ui.plot.curve import columns_of
from spikeview.ui.plot.scale import Across, Up


def draw_limit(painter: QPainter, columns: Envelope, across: Across, up: Up, colour: QColor) -> None:
    """A limit that rarely changes: a dashed line at every value it has."""
    held = np.flatnonzero(columns.drawn)
    if len(held) == 0:
        return
    pen = QPen(colour, 1)
    pen.setDashPattern([5, 4])
    painter.setPen(pen)
    values = columns.high[held]
    for part in np.split(np.arange(len(held)), np.flatnonzero(np.diff(values)) + 1):
        height = round(up.pixel(float(values[part[0]]))) + 0.5
        begin, end = across.left + float(held[part[0]]), across.left + float(held[part[-1]]) + 1
        if len(part) == len(held):
            begin, end = across.left, across.left + across.width
        painter.drawLine(QLineF(begin, height, end, height))


def draw_strip(painter: QPainter, pyramid: Pyramid, across: Across, area: QRectF, colour: QColor) -> None:
    """A factor from 0 to 1 as a strip, darker where it is lower; each row as wide as it is apart from the next."""
    width = max(1, int(area.width()))
    if across.rows_per_pixel > 1:
        columns = columns_of(pyramid, across)
        factor = np.where(columns.drawn, columns.low, 1.0)
    else:
        rows = np.floor(across.first + (np.arange(width) + 0.5) * across.rows_per_pixel + 0.5).astype(np.int64)
        inside = (rows >= 0) & (rows < len(pyramid))
        rows = np.clip(rows, 0, len(pyramid) - 1)
        factor = np.where(inside & (pyramid.kinds[rows] == 0), pyramid.values[rows], 1.0)
    strength = np.where(factor < 1, 0.2 + 0.8 * (1 - np.clip(factor, 0, 1)), 0.0)
    pixels = np.empty((1, width, 4), dtype=np.uint8)
    for channel, level in enumerate((colour.blue(), colour.green(), colour.red(), 255)):
        pixels[0, :, channel] = np.round(level * strength)
    image = QImage(pixels.data, width, 1, QImage.Format.Format_ARGB32_Premultiplied)
    painter.drawImage(area, image)
