"""The validation loss, which the loop tells of between rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spikeview.cells import Kind
from spikeview.format import number
from spikeview.rules.diagnosis import View
from spikeview.run import Run
from spikeview.ui.panels.panel import Curve, CurvePanel, Series
from spikeview.ui.places import positions_of
from spikeview.ui.spans import Span
from spikeview.ui.values import step_label


def told(run: Run) -> list[tuple[int, float]]:
    """Position and loss of every validation; of several after one row the last."""
    events = [
        event
        for event in run.events
        if event.get("kind") == "validation" and isinstance(event.get("loss"), int | float)
    ]
    return list(dict(zip(positions_of(run, events), (float(event["loss"]) for event in events), strict=True)).items())


def validation(run: Run) -> Series:
    """[rows]: the loss on the rows after which it was taken, elsewhere not applicable."""
    values, kinds = np.full(len(run), np.nan), np.full(len(run), Kind.NOT_APPLICABLE, dtype=np.uint8)
    for position, loss in told(run):
        values[position] = loss
        kinds[position] = Kind.NAN if np.isnan(loss) else Kind.FINITE
        kinds[position] = {np.inf: Kind.POS_INF, -np.inf: Kind.NEG_INF}.get(loss, kinds[position])
    return values, kinds


def head(view: View, position: int) -> Sequence[Span]:
    """The last one up to a row, and where it was taken."""
    before = [each for each in told(view.run) if each[0] <= position]
    if not before:
        return [Span("none up to here")]
    at, loss = max(before)
    return [Span(f"at step {step_label(view.run, at)}   "), Span(number(loss), "text", fixed=True)]


VALIDATION = CurvePanel(
    id="validation",
    title="Validation loss",
    help="The validation losses that the loop told the recorder of, where they were taken.",
    lacks=lambda run: "" if told(run) else "not recorded: validation events",
    curves=(Curve("executed", validation, sparse=True),),
    head=head,
    scale="auto",
)
