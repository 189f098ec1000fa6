"""A heatmap as an image: which cell stands at which pixel, and how bright it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QColor, QImage

from spikeview.run import Floats
from spikeview.ui.panels.panel import Cells
from spikeview.ui.plot.scale import Across

DECADES = 2.5
FAINTEST = 0.08


def heat(cells: Cells, across: Across, height: int) -> Floats:
    """[height, width]: the largest of the cells behind every pixel, NaN where there is none.

    A cell begins half a row before its position and reaches to the next, but no farther than is usual.
    """
    width = max(1, int(across.width))
    rows = across.first + across.rows_per_pixel * np.arange(width + 1) + 0.5
    at = np.searchsorted(cells.positions, rows)
    at[0] = np.searchsorted(cells.positions, across.first - 0.5, side="right")  # a row of which a part is in sight
    found = _largest(cells.values, at)
    usual = np.median(np.diff(cells.positions)) if len(cells.positions) > 1 else 1.0
    before = np.maximum(at[:-1] - 1, 0)
    reached = (at[:-1] > 0) & (at[:-1] == at[1:]) & (rows[:-1] - cells.positions[before] < usual)
    found[:, reached] = cells.values[:, before[reached]]
    lines = np.arange(height + 1) * len(cells.names) // max(1, height)
    return _stretched(found, lines)


def largest_of(values: Floats) -> float:
    """The largest finite value over zero; 1 where there is none."""
    finite = values[np.isfinite(values) & (values > 0)]
    return float(finite.max()) if len(finite) else 1.0


def image(values: Floats, largest: float, ground: QColor, colour: QColor, bad: QColor) -> QImage:
    """From the ground to the colour over the last DECADES below the largest value; what is not finite stands out."""
    with np.errstate(divide="ignore", invalid="ignore"):
        strength = np.clip(1 + np.log10(values / largest) / DECADES, FAINTEST, 1.0)
    ends = [np.array([each.blue(), each.green(), each.red(), 255.0]) for each in (ground, colour)]
    mix = np.where(np.isnan(values), 0.0, np.nan_to_num(strength, nan=FAINTEST))[:, :, None]
    pixels = ends[0] + (ends[1] - ends[0]) * mix
    pixels[np.isinf(values)] = [bad.blue(), bad.green(), bad.red(), 255.0]
    bytes_ = np.ascontiguousarray(np.round(pixels), dtype=np.uint8)
    return QImage(bytes_.data, values.shape[1], values.shape[0], QImage.Format.Format_RGB32).copy()


def _largest(values: Floats, at: NDArray[np.int64]) -> Floats:
    """[names, columns]: the largest of the values at[i] .. at[i + 1] - 1."""
    found = np.full((len(values), len(at) - 1), np.nan)
    held = np.flatnonzero(np.diff(at) > 0)
    if len(held):
        found[:, held] = np.fmax.reduceat(values[:, : at[-1]], at[held], axis=1)
    return found


def _stretched(values: Floats, lines: NDArray[np.int64]) -> Floats:
    """One row of pixels a line; where several names share one, their largest."""
    wide = np.maximum(lines[1:], lines[:-1] + 1)
    if (wide - lines[:-1] > 1).any():
        return np.stack([np.fmax.reduce(values[a:b], axis=0) for a, b in zip(lines[:-1], wide, strict=True)])
    return values[lines[:-1]]
