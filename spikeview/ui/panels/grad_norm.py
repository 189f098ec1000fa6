"""The gradient norm before clipping, the limit it was clipped to, and how hard."""

from __future__ import annotations

from collections.abc import Sequence

from spikeview.rules.diagnosis import View
from spikeview.ui.panels.panel import Curve, CurvePanel, column, has_values
from spikeview.ui.spans import Span
from spikeview.ui.values import cell


def head(view: View, position: int) -> Sequence[Span]:
    """The norm, how far it is from its baseline, the clip coefficient."""
    norm = cell(view, "grad_norm", position)
    spans = [Span(norm.text, norm.role, fixed=True), Span(f"   {norm.away}" if norm.away else "")]
    if has_values(view.run, "clip_coef"):
        coefficient = cell(view, "clip_coef", position)
        spans += [Span("   coefficient "), Span(coefficient.text, coefficient.role, fixed=True)]
    return spans


GRAD_NORM = CurvePanel(
    id="grad_norm",
    title="Pre-clip gradient norm",
    columns=("grad_norm",),
    help="The norm of all gradients before clipping, on a log axis; dashed, the norm they are clipped to. "
    "The strip below is the clip coefficient: darker where the gradient was cut harder.",
    curves=(Curve("norm", column("grad_norm")),),
    head=head,
    scale="log",
    limit="max_norm",
    strip="clip_coef",
    weight=9,
    shown=True,
)
