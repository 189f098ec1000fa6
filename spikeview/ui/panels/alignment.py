"""Whether the update went along the negative gradient."""

from __future__ import annotations

from collections.abc import Sequence

from spikeview.rules.diagnosis import View
from spikeview.ui.panels.panel import Curve, CurvePanel, beside_baseline, column
from spikeview.ui.spans import Span
from spikeview.ui.values import cell


def head(view: View, position: int) -> Sequence[Span]:
    """How it was measured, the cosine, its baseline."""
    measured = view.run.text("update_kind", position)
    cosine = cell(view, "update_cosine", position)
    return [Span(f"{measured}   " if measured else ""), *beside_baseline(cosine)]


ALIGNMENT = CurvePanel(
    id="alignment",
    title="Alignment cos(Δθ, −g)",
    columns=("update_cosine",),
    help="The cosine of the update with the negative gradient: 1 along it, below 0 against it. "
    "A skipped step has none.",
    curves=(Curve("cosine", column("update_cosine")),),
    head=head,
    limits=(-1.08, 1.08),
    ticks=(1.0, 0.0, -1.0),
    signed=True,
    weight=8,
    shown=True,
)
