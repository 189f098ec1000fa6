"""The raw loss."""

from __future__ import annotations

from collections.abc import Sequence

from spikeview.rules.diagnosis import View
from spikeview.ui.panels.panel import Curve, Panel, column
from spikeview.ui.spans import Span
from spikeview.ui.values import cell


def head(view: View, position: int) -> Sequence[Span]:
    """The raw loss and its baseline."""
    loss = cell(view, "loss", position)
    spans = [Span("raw   "), Span(loss.text, loss.role, fixed=True)]
    if loss.spread:
        spans += [Span("   baseline "), Span(loss.baseline, fixed=True), Span(" ± "), Span(loss.spread, fixed=True)]
    return spans


LOSS = Panel(
    id="loss",
    title="Loss",
    columns=("loss",),
    help="The loss of every row as it was computed, never smoothed. "
    "It judges the parameters that the row before left behind.",
    curves=(Curve("loss", column("loss")),),
    head=head,
    scale="auto",
    weight=10,
)
