"""The marks of bad rows, each kind with its own shape in a lane of its own: above the curves, or in a gutter below.

Those of a run that is compared with stand in the same lanes, larger, hollow and dimmed: they are seen around ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from spikeview.analysis.envelope import Envelope
from spikeview.analysis.extremes import NAN, NEG_INF, NEGATIVE, POS_INF, ZERO
from spikeview.ui.plot.scale import Across
from spikeview.ui.theme import Theme

LANE = 12.0
APART = 8
OTHER_SIZE, OTHER_STRENGTH = 1.5, 0.65


@dataclass(frozen=True)
class Mark:
    """One kind of bad row: its legend, the role of its colour and the flag it stands for; `draw_mark` has its shape.

    Those that are `below` are what a log axis has no place for.
    """

    id: str
    text: str
    role: str
    flag: int = 0
    below: bool = False


NAN_MARK = Mark("nan", "NaN", "bad", int(NAN))
INF_MARK = Mark("inf", "Inf", "bad", int(POS_INF))
NEG_INF_MARK = Mark("neg_inf", "−Inf", "bad", int(NEG_INF))
SKIPPED_MARK = Mark("skipped", "skipped", "warn")
ZERO_MARK = Mark("zero", "0", "warn", int(ZERO), below=True)
NEGATIVE_MARK = Mark("negative", "< 0", "warn", int(NEGATIVE), below=True)
MARKS = (NAN_MARK, INF_MARK, NEG_INF_MARK, SKIPPED_MARK, ZERO_MARK, NEGATIVE_MARK)


def lanes(seen: int, skips: bool, below: bool = False) -> tuple[Mark, ...]:
    """The kinds of mark of the flags that are seen anywhere in a panel, so that its lanes stay while it is moved.

    `skips` says whether there are skipped rows.
    """
    found = [mark for mark in MARKS if seen & mark.flag or (mark is SKIPPED_MARK and skips)]
    return tuple(mark for mark in found if mark.below == below)


def draw_marks(
    painter: QPainter,
    marks: Sequence[Mark],
    columns: Sequence[Envelope],
    skipped: NDArray[np.generic],
    across: Across,
    top: float,
    theme: Theme,
    other: bool = False,
) -> None:
    """One lane for each kind. Every bad column has its tick; shapes stand no closer than they can be told apart.

    `skipped` are the positions of skipped rows, rising. `other` is for the marks of a run that is compared with.
    """
    if not marks or not columns:
        return
    flags = np.bitwise_or.reduce([column.flags for column in columns])
    for lane, mark in enumerate(marks):
        found = marked(skipped, across) if mark is SKIPPED_MARK else np.flatnonzero(flags & mark.flag)
        y = top + LANE * (lane + 0.5)
        shaped = _apart(found)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        for column in shaped:
            draw_mark(painter, mark, QPointF(across.left + column + 0.5, y), theme, other=other)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        if len(shaped) < len(found):
            for run in np.split(found, np.flatnonzero(np.diff(found) > 1) + 1):
                area = QRectF(across.left + float(run[0]), y + LANE / 2 - (2 if other else 1), len(run), 1)
                painter.fillRect(area, _colour(mark, theme, other))


def draw_mark(
    painter: QPainter, mark: Mark, centre: QPointF, theme: Theme, size: float = 4.0, other: bool = False
) -> None:
    """◆ NaN, ▲ Inf, ▼ -Inf, × skipped, ○ zero, ▽ negative; of another run ◇, △, ▽, and the rest larger and thinner."""
    x, y, colour = centre.x(), centre.y(), _colour(mark, theme, other)
    size *= OTHER_SIZE if other else 1.0
    hollow = mark.below or other
    painter.setPen(QPen(colour, 1.2) if hollow else Qt.PenStyle.NoPen)
    painter.setBrush(Qt.BrushStyle.NoBrush if hollow else colour)
    if mark is NAN_MARK:
        painter.drawPolygon(
            QPolygonF([QPointF(x, y - size), QPointF(x + size, y), QPointF(x, y + size), QPointF(x - size, y)])
        )
    elif mark is SKIPPED_MARK:
        arm = size * 0.75
        painter.setPen(QPen(colour, 1.0 if other else 1.6))
        painter.drawLine(QPointF(x - arm, y - arm), QPointF(x + arm, y + arm))
        painter.drawLine(QPointF(x - arm, y + arm), QPointF(x + arm, y - arm))
    elif mark is ZERO_MARK:
        painter.drawEllipse(centre, size * 0.7, size * 0.7)
    else:
        tip = -size * 0.9 if mark is INF_MARK else size * 0.9
        painter.drawPolygon(QPolygonF([QPointF(x, y + tip), QPointF(x + size, y - tip), QPointF(x - size, y - tip)]))


def _colour(mark: Mark, theme: Theme, other: bool) -> QColor:
    return theme.tint(mark.role, OTHER_STRENGTH) if other else theme[mark.role]


def marked(positions: NDArray[np.generic], across: Across) -> NDArray[np.int64]:
    """The columns of pixels in which some of these rising positions lie."""
    begin, end = np.searchsorted(positions, [across.first, across.last])
    pixels = across.pixels(positions[begin:end]) - across.left
    return np.unique(np.clip(pixels, 0, max(0, int(across.width) - 1)).astype(np.int64))


def _apart(columns: NDArray[np.int64]) -> list[int]:
    """Those of the columns, from the first, that stand at least a shape apart."""
    chosen: list[int] = []
    for column in columns.tolist():
        if not chosen or column - chosen[-1] >= APART:
            chosen.append(column)
    return chosen
