"""Drawing one series: every extreme of every column of pixels, or the rows themselves where there is room."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QPointF, Qt
from PySide6.QtGui import QPainter, QPen
from shiboken6 import Shiboken

from spikeview.analysis.envelope import Envelope, Positions, envelope
from spikeview.analysis.extremes import DRAWN, row_flags
from spikeview.analysis.pyramid import BLOCK, Pyramid
from spikeview.run import Floats
from spikeview.ui.plot.scale import Across, Up

POINTS_FROM: Final = 7.0
SMOOTH_UP_TO: Final = 400
DASH: Final = 6.0
DASH_EVERY: Final = 11.0
ASIDE: Final = 2.0
ASUNDER: Final = 4


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
    sparse: bool = False,
) -> None:
    """The curve of what is visible; points are drawn too where rows stand apart, and where one stands alone.

    A dashed curve is all of upright and level lines, and has no points but for those that stand alone. Of a sparse
    one the points are drawn and joined, while they can be told apart.
    """
    if sparse:
        positions = sparse_rows(pyramid, across)
        if len(positions) * ASUNDER <= across.width:
            draw_joined(painter, across.pixels(positions), up.pixels(pyramid.values[positions]), pen)
            return
    if across.rows_per_pixel > 1:
        draw_columns(painter, columns, across, up, pen, dashed)
        return
    positions, values = drawn_rows(pyramid, across)
    x, y = across.pixels(positions), up.pixels(values)
    joined, alone = links(positions)
    few = len(positions) <= SMOOTH_UP_TO
    draw_links(painter, x, y, joined, QPen(pen.color(), pen.widthF() + (1.0 if stairs else 0.6) * few), stairs, dashed)
    pointed = np.ones(len(x), dtype=bool) if 1 / across.rows_per_pixel >= POINTS_FROM and not dashed else alone
    draw_points(painter, x[pointed], y[pointed], pen, 2.6 if 1 / across.rows_per_pixel >= 3 * POINTS_FROM else 1.8)


def links(positions: Positions) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of some rising rows stand right before the next of them, [rows - 1], and which stand alone, [rows]."""
    joined = np.diff(positions) == 1
    beside = np.append(joined, False) | np.insert(joined, 0, False)
    return joined, ~beside[: len(positions)]


def draw_links(
    painter: QPainter, x: Floats, y: Floats, joined: NDArray[np.bool_], pen: QPen, stairs: bool, dashed: bool
) -> None:
    """A line from each row to the next, as a slope or as a stair, where `joined`, [rows - 1], says so."""
    lines = np.stack([x[:-1], y[:-1], x[1:], y[1:]], axis=1)[joined]
    lines = _as_stairs(lines) if stairs else lines
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, len(x) <= SMOOTH_UP_TO and not stairs)
    draw_lines(painter, _dashes(lines) if dashed else lines, pen)


def draw_columns(painter: QPainter, columns: Envelope, across: Across, up: Up, pen: QPen, dashed: bool = False) -> None:
    """One upright line for each column of pixels that holds a drawable row."""
    lines = _column_lines(columns, across, up)
    draw_lines(painter, _dashes(lines) if dashed else lines, pen)


def drawn_rows(pyramid: Pyramid, across: Across) -> tuple[Positions, Floats]:
    """Positions and values of the drawable rows in sight, and of one on either side so that lines go on."""
    begin = min(max(0, math.floor(across.first) - 1), len(pyramid))
    end = min(len(pyramid), math.ceil(across.last) + 2)
    rows = slice(begin, max(begin, end))
    drawn = row_flags(pyramid.values[rows], pyramid.kinds[rows], pyramid.positive) == DRAWN
    return begin + np.flatnonzero(drawn), pyramid.values[rows][drawn]


def sparse_rows(pyramid: Pyramid, across: Across) -> Positions:
    """The positions of the drawable rows in sight of a series that has few, and of one on either side."""
    begin, end = np.clip([math.floor(across.first), math.ceil(across.last) + 1], 0, len(pyramid))
    blocks = np.flatnonzero(pyramid.flags & DRAWN)
    near = _and_beside(blocks, begin // BLOCK, -(-end // BLOCK))
    rows = (near[:, None] * BLOCK + np.arange(BLOCK)).ravel()
    rows = rows[rows < len(pyramid)]
    rows = rows[row_flags(pyramid.values[rows], pyramid.kinds[rows], pyramid.positive) == DRAWN]
    return _and_beside(rows, begin, end)


def _and_beside(rising: Positions, begin: int, end: int) -> Positions:
    """Those from begin on and before the end, and one on either side."""
    first, last = np.searchsorted(rising, [begin, end])
    return rising[max(0, first - 1) : last + 1]


def draw_joined(painter: QPainter, x: Floats, y: Floats, pen: QPen) -> None:
    """Points, and the lines between them."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    draw_lines(painter, np.stack([x[:-1], y[:-1], x[1:], y[1:]], axis=1), QPen(pen.color(), 1.4))
    draw_points(painter, x, y, pen, 2.6)


def draw_points(painter: QPainter, x: Floats, y: Floats, pen: QPen, radius: float = 1.8) -> None:
    """A disc at each."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(pen.color())
    for at, height in zip(x, y, strict=True):
        painter.drawEllipse(QPointF(at, height), radius, radius)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)


def _column_lines(columns: Envelope, across: Across, up: Up) -> Floats:
    """One upright line a column, each long enough to meet the one before it."""
    held = np.flatnonzero(columns.drawn)
    top, bottom = up.pixels(np.stack([columns.high[held], columns.low[held]]))
    joined = np.diff(held) == 1
    lines = np.empty((len(held), 4))
    lines[:, 0] = lines[:, 2] = across.left + 0.5 + held
    lines[:, 1], lines[:, 3] = top, bottom
    np.minimum(top[1:], bottom[:-1], out=lines[1:, 1], where=joined)
    np.maximum(bottom[1:], top[:-1], out=lines[1:, 3], where=joined)
    lines[:, 3] += 0.8  # a line of no length would not be drawn at all
    return lines


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
