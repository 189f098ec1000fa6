"""Another run's curves behind those of the run that is shown, row beside row by the clock that aligns them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtGui import QPainter, QPen

from spikeview.analysis.envelope import DRAWN, Envelope, between, edges, row_flags, snapped
from spikeview.ui.plot.curve import SMOOTH_UP_TO, draw_columns, draw_lines
from spikeview.ui.plot.scale import Across, Up
from spikeview.ui.reference import Overlay
from spikeview.ui.theme import Theme

DIMMED = 0.45


def overlay_columns(overlay: Overlay, panel_id: str, across: Across, rows: int) -> list[Envelope]:
    """For each curve what stands in every column of pixels; nothing where the other run lacks the panel."""
    curves = overlay.curves.get(panel_id)
    if curves is None:
        return []
    ours = edges(across.first, across.last, max(1, int(across.width)), rows).at
    cuts = overlay.alignment.cuts(ours)
    return [between(pyramid, snapped(cuts, len(pyramid))) for pyramid in curves.curves]


def draw_overlay(
    painter: QPainter,
    overlay: Overlay,
    panel_id: str,
    columns: Sequence[Envelope],
    across: Across,
    up: Up,
    theme: Theme,
) -> None:
    """Dimmed, and one pixel wide, so that the run itself is told apart from it."""
    curves = overlay.curves.get(panel_id)
    if curves is None:
        return
    for curve, pyramid, column in zip(curves.drawn, curves.curves, columns, strict=True):
        pen = QPen(theme.tint(curve.role, DIMMED), 1)
        if across.rows_per_pixel > 1:
            draw_columns(painter, column, across, up, pen)
            continue
        ours = np.arange(max(0, int(across.first) - 1), min(len(overlay.alignment.ours), int(across.last) + 2))
        if len(ours) == 0:
            continue
        begin, end = overlay.alignment.cuts(np.array([ours[0], ours[-1] + 1]))
        rows = slice(begin, end)
        drawn = row_flags(pyramid.values[rows], pyramid.kinds[rows], pyramid.positive) == DRAWN
        clock = overlay.alignment.theirs[rows][drawn]
        x = across.pixels(np.interp(clock, overlay.alignment.ours[ours], ours))
        y = up.pixels(pyramid.values[rows][drawn])
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, len(x) <= SMOOTH_UP_TO)
        draw_lines(painter, np.stack([x[:-1], y[:-1], x[1:], y[1:]], axis=1), pen)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
