"""How far the ranks of a training lie apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spikeview.cells import Kind
from spikeview.format import number
from spikeview.moments import NONE
from spikeview.ranks import Spread
from spikeview.rules.diagnosis import View
from spikeview.run import Run
from spikeview.ui.panels.panel import Curve, CurvePanel, Series, column
from spikeview.ui.ranked import RankedRun
from spikeview.ui.spans import Span

COLUMN = "loss"


def spread_of(run: Run) -> Spread | None:
    """The losses of all ranks; None where one rank was read."""
    return run.ranks.spread(COLUMN, _optimizer(run)) if isinstance(run, RankedRun) else None


def _optimizer(run: Run) -> str:
    return run.optimizers[0] if run.optimizers else ""


def extreme(which: str) -> Callable[[Run], Series]:
    """A reader of the lowest or the highest of the ranks' values, on the rows of the rank that is shown."""

    def read(run: Run) -> Series:
        spread = spread_of(run)
        assert spread is not None
        values = getattr(spread, which)[spread.aligned.moments(run.rank)]
        return values, np.where(np.isnan(values), Kind.NOT_RECORDED, Kind.FINITE).astype(np.uint8)

    return read


def head(view: View, position: int) -> Sequence[Span]:
    """Which rank was lowest and which highest on a row."""
    run = view.run
    assert isinstance(run, RankedRun)
    aligned = run.ranks.aligned(_optimizer(run))
    moment = int(aligned.moments(run.rank)[position])
    told = []
    for place, rank in enumerate(aligned.ranks):
        at, rows = int(aligned.positions[place, moment]), run.ranks.runs[rank].of(view.optimizer)
        if at != NONE and rows.recorded(COLUMN)[at]:
            told.append((float(rows.values(COLUMN)[at]), rank))
    if not told:
        return [Span("not recorded")]
    (low, lowest), (high, highest) = min(told), max(told)
    return [
        Span(f"lowest rank {lowest} "),
        Span(number(low), "text", fixed=True),
        Span(f"   highest rank {highest} "),
        Span(number(high), "text", fixed=True),
    ]


RANK_SPREAD = CurvePanel(
    id="rank_spread",
    title="Loss over the ranks",
    columns=(COLUMN,),
    help="The lowest and the highest loss of all ranks at each row, and between them that of the rank that is shown.",
    lacks=lambda run: "" if isinstance(run, RankedRun) else "only one rank was recorded",
    curves=(
        Curve("attempted", extreme("highest")),
        Curve("attempted", extreme("lowest")),
        Curve("loss", column(COLUMN)),
    ),
    head=head,
    scale="auto",
)
