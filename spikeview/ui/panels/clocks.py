"""How far the clocks of a run have drifted apart: attempts, executions, scheduler steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spikeview.cells import Kind
from spikeview.format import words
from spikeview.rules.diagnosis import View
from spikeview.run import Run
from spikeview.ui.near import near
from spikeview.ui.panels.panel import ByRow, Curve, CurvePanel, Series
from spikeview.ui.spans import Span


def ahead(clock: str) -> ByRow:
    """By how much a clock is ahead of the executions; a cell is what the less known of the two is."""

    def read(run: Run) -> Series:
        difference = np.empty(len(run))
        np.subtract(run.values(clock), run.values("executed_n"), out=difference, casting="unsafe")
        kinds = np.maximum(run.kind(clock), run.kind("executed_n"))
        difference[kinds > 0] = np.nan
        return difference, kinds

    return ByRow((clock, "executed_n"), read)


def head(view: View, position: int) -> Sequence[Span]:
    """Both differences, each with the line it is drawn as."""
    block, at = near(view, position)
    spans: list[Span] = []
    for clock, name, line in (("attempted_n", "attempted", "──"), ("scheduled_n", "scheduled", "╌╌")):
        spans += [
            Span("    " if spans else ""),
            Span(line, name, fixed=True, bold=True),
            Span(f" {name}", name),
            Span(" − executed "),
            _difference(block.run, clock, at),
        ]
    return spans


def _difference(run: Run, clock: str, position: int) -> Span:
    for name in (clock, "executed_n"):
        if run.kind(name)[position] != Kind.FINITE:
            return Span(words(run, name, position))
    value = int(run.values(clock)[position]) - int(run.values("executed_n")[position])
    return Span(f"{value:d}", "warn" if value else "text", fixed=True)


CLOCKS = CurvePanel(
    id="clocks",
    title="Clocks",
    columns=("attempted_n", "executed_n"),
    help="Attempted minus executed rises with every skipped step. Scheduled minus executed rises where the scheduler "
    "moves on without one.",
    curves=(Curve("attempted", ahead("attempted_n")), Curve("scheduled", ahead("scheduled_n"), dashed=True)),
    head=head,
    least_span=3.0,
    stairs=True,
    weight=6,
    shown=True,
)
