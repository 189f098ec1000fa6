"""The scale of a GradScaler."""

from __future__ import annotations

from collections.abc import Sequence

from spikeview.rules.diagnosis import View
from spikeview.ui.panels.panel import Curve, CurvePanel, column
from spikeview.ui.spans import Span
from spikeview.ui.values import cell


def head(view: View, position: int) -> Sequence[Span]:
    """The scale the row ran under."""
    scale = cell(view, "loss_scale", position)
    return [Span(scale.text, scale.role, fixed=True)]


LOSS_SCALE = CurvePanel(
    id="loss_scale",
    title="Loss scale",
    columns=("loss_scale",),
    help="The scale each row ran under. It is halved after a skipped step and doubles after many good ones; "
    "one that only falls, or never moves, is a finding.",
    curves=(Curve("scaler", column("loss_scale")),),
    head=head,
    scale="log",
    stairs=True,
)
