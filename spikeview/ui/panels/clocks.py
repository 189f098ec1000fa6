"""How far the clocks of a run have drifted apart: attempts, executions, scheduler steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spikeview.rules.diagnosis import View
from spikeview.run import Kind, Run
from spikeview.ui.panels.panel import Curve, Panel, Series
from spikeview.ui.spans import Span
from spikeview.ui.values import NOT_RECORDED


def ahead(clock: str) -> Callable[[Run], Series]:
    """By how much a clock is ahead of the executions; a cell is what the less known of the two is."""

    def read(run: Run) -> Series:
        difference = (run.values(clock) - run.values("executed_n")).astype(np.float64)
        kinds = np.maximum(run.kind(clock), run.kind("executed_n"))
        difference[kinds > 0] = np.nan
        return difference, kinds

    return read


def head(view: View, position: int) -> Sequence[Span]:
    """Both differences, each in the colour of its curve."""
    spans: list[Span] = []
    for clock, name in (("attempted_n", "attempted"), ("scheduled_n", "scheduled")):
        spans += [
            Span(f"{'   ' if spans else ''}{name}", name),
            Span(" − executed "),
            _difference(view.run, clock, position),
        ]
    return spans


def _difference(run: Run, clock: str, position: int) -> Span:
    if run.kind(clock)[position] == Kind.NOT_APPLICABLE:
        return Span("n/a", fixed=True)
    if not (run.recorded(clock)[position] and run.recorded("executed_n")[position]):
        return Span(NOT_RECORDED, fixed=True)
    value = int(run.values(clock)[position]) - int(run.values("executed_n")[position])
    return Span(f"{value:d}", "warn" if value else "text", fixed=True)


CLOCKS = Panel(
    id="clocks",
    title="Clocks",
    columns=("attempted_n", "executed_n"),
    help="Attempted minus executed rises with every skipped step. Scheduled minus executed rises where the scheduler "
    "moves on without one.",
    curves=(Curve("scheduled", ahead("scheduled_n"), width=3.0), Curve("attempted", ahead("attempted_n"))),
    head=head,
    least_span=3.0,
    stairs=True,
    weight=6,
)
