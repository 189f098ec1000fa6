"""How often the gradient is clipped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spikeview.cells import Kind
from spikeview.rules.diagnosis import View
from spikeview.run import Run
from spikeview.ui.panels.panel import Curve, CurvePanel, Series
from spikeview.ui.spans import Span
from spikeview.ui.values import cell

WINDOW = 100


def clipped_share(run: Run) -> Series:
    """[rows]: the share of the last WINDOW rows with a coefficient that were cut; without any, not recorded."""
    known = run.kind("clip_coef") == Kind.FINITE
    cut = known & (run.values("clip_coef") < 1)
    counted, cuts = _in_window(known), _in_window(cut)
    kinds = np.where(counted > 0, Kind.FINITE, Kind.NOT_RECORDED).astype(np.uint8)
    return np.where(counted > 0, cuts / np.maximum(counted, 1), np.nan), kinds


def _in_window(mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    total = np.cumsum(mask, dtype=np.int32)
    total[WINDOW:] -= total[:-WINDOW].copy()
    return total


def head(view: View, position: int) -> Sequence[Span]:
    """The share up to one row, from the rows themselves, and that row's own coefficient."""
    rows = slice(max(0, position - WINDOW + 1), position + 1)
    known = view.run.kind("clip_coef")[rows] == Kind.FINITE
    cut = int((known & (view.run.values("clip_coef")[rows] < 1)).sum())
    own = cell(view, "clip_coef", position)
    return [
        Span(f"{cut} of the last {int(known.sum())} clipped", "text", fixed=True),
        Span("   coefficient "),
        Span(own.text, own.role, fixed=True),
    ]


CLIP_FREQUENCY = CurvePanel(
    id="clip_frequency",
    title="Clip frequency",
    columns=("clip_coef",),
    help=f"The share of the last {WINDOW} rows whose gradient was cut: 1 means that every step is clipped, "
    "and the learning rate is then decided by the limit.",
    curves=(Curve("coefficient", clipped_share),),
    head=head,
    limits=(-0.05, 1.05),
    ticks=(1.0, 0.5, 0.0),
)
