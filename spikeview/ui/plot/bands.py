"""The incidents of a view as tinted bands, however many there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter

from spikeview.analysis.envelope import Positions
from spikeview.rules.diagnosis import Diagnosed
from spikeview.ui.plot.scale import Across
from spikeview.ui.theme import Theme
from spikeview.ui.values import severity_role

LEAST = 3.0
FAINT, STRONG = 0.07, 0.14


@dataclass(frozen=True, eq=False)
class Bands:
    """[incidents]: first and last position of each, the role of its colour, and its place among all of the run's."""

    first: Positions
    last: Positions
    role: NDArray[np.str_]
    number: Positions


def bands_of(incidents: Sequence[Diagnosed], optimizer: str) -> Bands:
    """Those of one optimizer."""
    own = [(number, each) for number, each in enumerate(incidents) if each.view.optimizer == optimizer]
    return Bands(
        np.array([each.incident.first_bad.position for _, each in own], dtype=np.int64),
        np.array([each.incident.last for _, each in own], dtype=np.int64),
        np.array([severity_role(each) for _, each in own], dtype=str),
        np.array([number for number, _ in own], dtype=np.int64),
    )


def draw_bands(
    painter: QPainter, bands: Bands, across: Across, area: QRectF, theme: Theme, selected: int | None
) -> None:
    """Each as wide as its rows, and never too narrow to be seen; the selected one stronger."""
    left = across.pixels(bands.first - 0.5)
    right = np.maximum(across.pixels(bands.last + 0.5), left + LEAST)
    seen = (right >= area.left()) & (left <= area.right())
    if not seen.any():
        return
    chosen = bands.number == selected
    for role in ("warn", "bad"):
        own = seen & (bands.role == role)
        for which, strength in ((own & ~chosen, FAINT), (own & chosen, STRONG)):
            _fill(painter, left[which], right[which], area, theme.tint(role, strength))


def _fill(
    painter: QPainter, left: NDArray[np.float64], right: NDArray[np.float64], area: QRectF, colour: QColor
) -> None:
    """Where they overlap or touch they are one: thousands of them are no more than the columns of pixels."""
    if len(left) == 0:
        return
    width = int(area.width()) + 1
    begin = np.clip(np.round(left - area.left()), 0, width).astype(np.int64)
    end = np.clip(np.round(right - area.left()), 0, width).astype(np.int64)
    depth = np.bincount(begin, minlength=width + 1) - np.bincount(end, minlength=width + 1)
    covered = np.flatnonzero(np.diff(np.concatenate([[0], np.cumsum(depth) > 0, [0]])))
    for first, last in covered.reshape(-1, 2).tolist():
        painter.fillRect(QRectF(area.left() + first, area.top(), last - first, area.height()), colour)
