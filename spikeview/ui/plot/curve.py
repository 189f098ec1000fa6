"""Drawing one series: every extreme of every column of pixels, or the rows themselves where there is room."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen
from shiboken6 import Shiboken

from spikeview.analysis.envelope import DRAWN, Envelope, Pyramid, envelope, row_flags
from spikeview.run import Floats
from spikeview.ui.plot.scale import Across, Up

POINTS_FROM: Final = 7.0
SMOOTH_UP_TO: Final = 400
DASH: Final = 6.0
DASH_EVERY: Final = 11.0
ASIDE: Final = 2.0


def columns_of(pyramid: Pyramid, across: Across) -> Envelope:
    """One column a pixel."""
    return envelope(pyramid, across.first, across.last, max(1, int(across.width)))


def draw_curve(
    painter: QPainter,
    pyramid: Pyramid,
    columns: Envelope,
    across: Across,
    up: Up,
    pen: QPen,
    stairs: bool = False,
    dashed: bool = False,
) -> None:
    """The curve of what is visible; points are drawn too where rows stand apart, and where one stands alone.

    A dashed curve is all of upright and level lines, and has no points but for those that stand alone.
    """
    if across.rows_per_pixel > 1:
        lines = _column_lines(columns, across, up)
        draw_lines(painter, _dashes(lines) if dashed else lines, pen)
        return
    positions, values = drawn_rows(pyramid, across)
    x, y = across.pixels(positions), up.pixels(values)
    joined = np.diff(positions) == 1
    lines = np.stack([x[:-1], y[:-1], x[1:], y[1:]], axis=1)[joined]
    if stairs:
        lines = _as_stairs(lines)
    if dashed:
        lines = _dashes(lines)
    few = len(positions) <= SMOOTH_UP_TO
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, few and not stairs)
    draw_lines(painter, lines, QPen(pen.color(), pen.widthF() + (1.0 if stairs else 0.6) * few))
    alone = ~(np.append(joined, False) | np.insert(joined, 0, False)) if len(positions) else joined
    pointed = np.ones(len(x), dtype=bool) if 1 / across.rows_per_pixel >= POINTS_FROM and not dashed else alone
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(pen.color())
    radius = 2.6 if 1 / across.rows_per_pixel >= 3 * POINTS_FROM else 1.8
    for at, height in zip(x[pointed], y[pointed], strict=True):
        painter.drawEllipse(QPointF(at, height), radius, radius)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)


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


def drawn_rows(pyramid: Pyramid, across: Across) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Floats]:
    """Positions and values of the drawable rows in sight, and of one on either side so that lines go on."""
    begin = min(max(0, math.floor(across.first) - 1), len(pyramid))
    end = min(len(pyramid), math.ceil(across.last) + 2)
    rows = slice(begin, max(begin, end))
    drawn = row_flags(pyramid.values[rows], pyramid.kinds[rows], pyramid.positive) == DRAWN
    return begin + np.flatnonzero(drawn), pyramid.values[rows][drawn]


def _column_lines(columns: Envelope, across: Across, up: Up) -> Floats:
    """One upright line a column, each long enough to meet the one before it."""
    held = np.flatnonzero(columns.drawn)
    top, bottom = up.pixels(columns.high[held]), up.pixels(columns.low[held])
    joined = np.diff(held) == 1
    reach_up = np.where(joined, np.minimum(top[1:], bottom[:-1]), top[1:])
    reach_down = np.where(joined, np.maximum(bottom[1:], top[:-1]), bottom[1:])
    x = across.left + held + 0.5
    # a line of no length would not be drawn at all
    upper, lower = np.concatenate([top[:1], reach_up]), np.concatenate([bottom[:1], reach_down]) + 0.8
    return np.stack([x, upper, x, lower], axis=1)


def _as_stairs(lines: Floats) -> Floats:
    """Each line as one across at the old height and one upright at the new place."""
    x1, y1, x2, y2 = lines.T
    return np.concatenate([np.stack([x1, y1, x2, y1], axis=1), np.stack([x2, y1, x2, y2], axis=1)])


def _dashes(lines: Floats) -> Floats:
    """Upright and level lines cut into dashes by where they lie, so that one line goes on where another ends.

    They stand a little aside, so that a curve right under them is seen whole.
    """
    lines = lines[(lines[:, :2] != lines[:, 2:]).any(axis=1)]
    begin, end = lines[:, :2].sum(axis=1), lines[:, 2:].sum(axis=1)
    low, high = np.minimum(begin, end), np.maximum(begin, end)
    first = np.floor(low / DASH_EVERY)
    counts = (np.floor(high / DASH_EVERY) - first).astype(np.int64) + 1
    line = np.repeat(np.arange(len(lines)), counts)
    within = np.arange(len(line)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = (first[line] + within) * DASH_EVERY
    cuts = np.stack([np.maximum(starts, low[line]), np.minimum(starts + DASH, high[line])], axis=1)
    kept = cuts[:, 1] > cuts[:, 0]
    cuts, line = cuts[kept], line[kept]
    share = (cuts - begin[line, None]) / (end - begin)[line, None]
    points = lines[line, None, :2] + share[:, :, None] * (lines[line, 2:] - lines[line, :2])[:, None, :]
    dashes: Floats = points.reshape(-1, 4) - ASIDE
    return dashes


def draw_lines(painter: QPainter, lines: Floats, pen: QPen) -> None:
    """All lines in one call: Qt reads the [n, 4] array in place, as an array of QLineF."""
    if len(lines) == 0:
        return
    lines = np.ascontiguousarray(lines, dtype=np.float64)
    painter.setPen(pen)
    first = Shiboken.wrapInstance(lines.ctypes.data, QLineF)
    painter.drawLines(first, len(lines))  # type: ignore[call-overload]  # the stubs take what is wrapped for an Object
