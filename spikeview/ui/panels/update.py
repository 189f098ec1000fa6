"""How large the updates are: beside the parameters, and in themselves."""

from __future__ import annotations

from collections.abc import Sequence

from spikeview.rules.diagnosis import View
from spikeview.ui.panels.panel import Curve, CurvePanel, beside_baseline, column, named
from spikeview.ui.spans import Span
from spikeview.ui.values import cell


def ratio_head(view: View, position: int) -> Sequence[Span]:
    """The ratio and its baseline."""
    return beside_baseline(cell(view, "update_ratio", position))


def norms_head(view: View, position: int) -> Sequence[Span]:
    """Both norms, each with its line."""
    parameters, update = cell(view, "param_norm", position), cell(view, "update_norm", position)
    return [*named("parameters", "attempted", parameters, "╌╌"), Span("    "), *named("update", "ratio", update)]


UPDATE_RATIO = CurvePanel(
    id="update_ratio",
    title="Update ratio",
    columns=("update_ratio",),
    help="The norm of each update over the norm of the parameters, on a log axis. A skipped step has none.",
    curves=(Curve("ratio", column("update_ratio")),),
    head=ratio_head,
    scale="log",
)

UPDATE_NORMS = CurvePanel(
    id="update_norms",
    title="Update and parameter norm",
    columns=("update_norm",),
    help="The norm of each update, and of the parameters before it where it was measured, on one log axis.",
    curves=(Curve("ratio", column("update_norm")), Curve("attempted", column("param_norm"), sparse=True)),
    head=norms_head,
    scale="log",
)
