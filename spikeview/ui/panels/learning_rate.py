"""The learning rate, of each parameter group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spikeview.cells import Kind
from spikeview.rules.diagnosis import View
from spikeview.run import Run
from spikeview.ui.group_rates import further_groups, group_rates, of_row
from spikeview.ui.panels.panel import Curve, CurvePanel, Series, column
from spikeview.ui.spans import Span
from spikeview.ui.values import cell

ROLES = ("executed", "norm", "loss", "ratio", "coefficient", "cosine", "scaler", "attempted")


def head(view: View, position: int) -> Sequence[Span]:
    """The rates the row ran under."""
    rate, others = cell(view, "lr", position), of_row(view.run, position)
    first = [Span("first group   "), Span(rate.text, rate.role, fixed=True)]
    return [*first, Span("   others "), Span(others, "text", fixed=True)] if others else first


def of_group(group: int) -> Callable[[Run], Series]:
    """A reader of one of the further groups, from 0."""

    def read(run: Run) -> Series:
        values = group_rates(run)[group]
        return values, np.where(np.isnan(values), Kind.NOT_RECORDED, Kind.FINITE).astype(np.uint8)

    return read


def further(run: Run) -> tuple[Curve, ...]:
    """A curve for each further group, dashed: they often lie upon each other."""
    return tuple(Curve(ROLES[at % len(ROLES)], of_group(at), dashed=True) for at in range(further_groups(run)))


LEARNING_RATE = CurvePanel(
    id="learning_rate",
    title="Learning rate",
    columns=("lr",),
    help="The learning rate that each row ran under, of the optimizer's first parameter group; dashed, those of its "
    "further groups.",
    curves=(Curve("scheduled", column("lr")),),
    more=further,
    head=head,
    scale="auto",
)
