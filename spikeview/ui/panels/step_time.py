"""How long each row took."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spikeview.cells import Kind
from spikeview.format import number
from spikeview.rules.diagnosis import View
from spikeview.run import Run
from spikeview.ui.panels.panel import Curve, CurvePanel, Series
from spikeview.ui.spans import Span


def milliseconds(run: Run) -> Series:
    """[rows]: from the beginning of each row to that of the next one; the last of a segment has no end."""
    took, kinds = np.full(len(run), np.nan), np.full(len(run), Kind.NOT_APPLICABLE, dtype=np.uint8)
    if len(run) < 2:
        return took, kinds
    took[:-1] = np.diff(run.values("time_ns")) / 1e6
    known = run.recorded("time_ns")
    kinds[:-1] = np.where(known[:-1] & known[1:], Kind.FINITE, Kind.NOT_RECORDED)
    if "segment" in run:
        kinds[:-1][np.diff(run.values("segment")) != 0] = Kind.NOT_APPLICABLE
    took[kinds != Kind.FINITE] = np.nan
    return took, kinds


def head(view: View, position: int) -> Sequence[Span]:
    """The time from this row to the next."""
    if position + 1 >= len(view.run):
        return [Span("the last row has no end")]
    began = view.run.values("time_ns")[position : position + 2]
    if not view.run.recorded("time_ns")[position : position + 2].all():
        return [Span("not recorded")]
    return [Span(f"{number(float(began[1] - began[0]) / 1e6)} ms", "text", fixed=True)]


STEP_TIME = CurvePanel(
    id="step_time",
    title="Step time",
    columns=("time_ns",),
    help="Milliseconds from the beginning of each row to the beginning of the next, on a log axis: with what the "
    "loop does between them, such as loading data or validating.",
    curves=(Curve("attempted", milliseconds),),
    head=head,
    scale="log",
)
