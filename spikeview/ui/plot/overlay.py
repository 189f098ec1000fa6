"""Another run's curves behind those of the run that is shown, row beside row by the clock that aligns them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from PySide6.QtGui import QPainter, QPen

from spikeview.analysis.envelope import Envelope, between, edges, snapped
from spikeview.analysis.extremes import DRAWN, Flags, row_flags
from spikeview.analysis.pyramid import BLOCK, Pyramid
from spikeview.run import Floats
from spikeview.ui.panels.panel import CurvePanel
from spikeview.ui.plot.curve import draw_columns, draw_links, draw_points, links
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
    columns = [between(pyramid, snapped(cuts, len(pyramid))) for pyramid in curves.curves]
    if across.rows_per_pixel > 1:
        return columns
    theirs, x = _in_sight(overlay, across)
    flags = [_flags(pyramid, theirs, x, across) for pyramid in curves.curves]
    return [replace(each, flags=own) for each, own in zip(columns, flags, strict=True)]


def seen_beside(overlay: Overlay, panel_id: str) -> int:
    """The flags of all cells of the other run's curves that stand beside a row of ours, wherever the panel is moved."""
    curves, alignment = overlay.curves.get(panel_id), overlay.alignment
    if curves is None:
        return 0
    begin, end = alignment.cuts(np.array([0, len(alignment.ours)]))
    return int(np.bitwise_or.reduce([_seen(pyramid, begin, end) for pyramid in curves.curves], initial=0))


def _seen(pyramid: Pyramid, begin: int, end: int) -> np.uint8:
    """The flags of the rows from begin to end - 1, of whole blocks at once."""
    first = min(-(-begin // BLOCK), end // BLOCK)
    last = max(first, end // BLOCK)
    seen = [pyramid.flags[first:last]]
    ends = (slice(begin, min(first * BLOCK, end)), slice(max(last * BLOCK, begin), end))
    seen += [row_flags(pyramid.values[rows], pyramid.kinds[rows], pyramid.positive) for rows in ends]
    found: np.uint8 = np.bitwise_or.reduce(np.concatenate(seen), initial=0)
    return found


def _in_sight(overlay: Overlay, across: Across) -> tuple[slice, Floats]:
    """The other run's rows beside those in sight and one on either side, and where each stands in pixels."""
    alignment = overlay.alignment
    ours = np.arange(max(0, int(across.first) - 1), min(len(alignment.ours), int(across.last) + 2))
    if len(ours) == 0:
        return slice(0, 0), np.zeros(0)
    begin, end = alignment.cuts(np.array([ours[0], ours[-1] + 1]))
    return slice(begin, end), across.pixels(np.interp(alignment.theirs[begin:end], alignment.ours[ours], ours))


def _flags(pyramid: Pyramid, rows: slice, x: Floats, across: Across) -> Flags:
    """The flags of rows in the columns of pixels where they stand, [width]."""
    flags = np.zeros(max(1, int(across.width)), dtype=np.uint8)
    column = np.floor(x - across.left).astype(np.int64)
    seen = (column >= 0) & (column < len(flags))
    each = row_flags(pyramid.values[rows], pyramid.kinds[rows], pyramid.positive)
    np.bitwise_or.at(flags, column[seen], each[seen])
    return flags


def draw_overlay(
    painter: QPainter,
    overlay: Overlay,
    panel: CurvePanel,
    columns: Sequence[Envelope],
    across: Across,
    up: Up,
    theme: Theme,
) -> None:
    """Dimmed, and one pixel wide, so that the run itself is told apart from it; else as the panel draws its own."""
    curves = overlay.curves.get(panel.id)
    if curves is None:
        return
    pens = [QPen(theme.tint(curve.role, DIMMED), 1) for curve in curves.drawn]
    if across.rows_per_pixel > 1:
        for curve, column, pen in zip(curves.drawn, columns, pens, strict=True):
            draw_columns(painter, column, across, up, pen, curve.dashed)
        return
    rows, x = _in_sight(overlay, across)
    for curve, pyramid, pen in zip(curves.drawn, curves.curves, pens, strict=True):
        values = pyramid.values[rows]
        drawn = np.flatnonzero(row_flags(values, pyramid.kinds[rows], pyramid.positive) == DRAWN)
        at, y = x[drawn], up.pixels(values[drawn])
        joined, alone = links(drawn)
        draw_links(painter, at, y, joined, pen, panel.stairs, curve.dashed)
        draw_points(painter, at[alone], y[alone], pen)
