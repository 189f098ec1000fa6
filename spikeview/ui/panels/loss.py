"""The raw loss."""

from __future__ import annotations

from collections.abc import Sequence

from spikeview.rules.diagnosis import View
from spikeview.ui.panels.panel import Curve, CurvePanel, beside_baseline, column
from spikeview.ui.spans import Span
from spikeview.ui.values import cell


def head(view: View, position: int) -> Sequence[Span]:
    """The raw loss and its baseline."""
    return [Span("raw   "), *beside_baseline(cell(view, "loss", position))]


LOSS = CurvePanel(
    id="loss",
    title="Loss",
    columns=("loss",),
    help="The loss of every row as it was computed, never smoothed. "
    "It judges the parameters that the row before left behind.",
    curves=(Curve("loss", column("loss")),),
    head=head,
    scale="auto",
    weight=10,
    shown=True,
)
