"""What a panel declares, and the series that are built from it while a run is opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spikeview.analysis.clocks import skipped_or_declined
from spikeview.analysis.envelope import Positions, Pyramid, build
from spikeview.rules.diagnosis import View
from spikeview.run import Floats, Kind, Run
from spikeview.ui.spans import Span
from spikeview.ui.values import Cell

Scale = Literal["linear", "log", "auto"]
Series = tuple[Floats, NDArray[np.uint8]]
WIDE = 100.0


@dataclass(frozen=True)
class Curve:
    """One line: the role of its colour, and its values and kinds, both [rows], read from a run.

    `dashed` is for a curve that may lie upon another: both are seen.
    """

    role: str
    read: Callable[[Run], Series]
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """One plot. `columns` are those it cannot do without; `head` is the text at its right for one row.

    `scale` "auto" is log where all values are positive and the largest is over 100 times the median. `limits` fixes the
    range; without it the visible values do, over at least `least_span`. `limit` is a column drawn as a dashed
    line, `strip` a factor from 0 to 1 drawn as a strip below, darker where lower. `weight` shares out the height.
    """

    id: str
    title: str
    columns: tuple[str, ...]
    help: str
    curves: tuple[Curve, ...]
    head: Callable[[View, int], Sequence[Span]]
    scale: Scale = "linear"
    limits: tuple[float, float] | None = None
    least_span: float = 0.0
    signed: bool = False
    stairs: bool = False
    limit: str | None = None
    strip: str | None = None
    weight: int = 3

    def missing(self, run: Run) -> tuple[str, ...]:
        """The needed columns of which the run holds no value."""
        return tuple(column for column in self.columns if not run.recorded(column).any())


@dataclass(frozen=True, eq=False)
class Plotted:
    """A panel's series for one view, ready to draw. `skipped` are the positions of skipped rows, rising."""

    log: bool
    curves: tuple[Pyramid, ...]
    limit: Pyramid | None
    strip: Pyramid | None
    skipped: Positions


def beside_baseline(found: Cell) -> list[Span]:
    """A value, then its baseline where it has one."""
    spans = [Span(found.text, found.role, fixed=True)]
    return [*spans, Span("   baseline "), Span(found.band, fixed=True)] if found.band else spans


def column(name: str) -> Callable[[Run], Series]:
    """A reader of one column as it was recorded."""
    return lambda run: (run.values(name).astype(np.float64, copy=False), run.kind(name))


def plotted(panel: Panel, run: Run) -> Plotted | None:
    """The series of a panel; None where the run lacks a column it needs. Raises nothing."""
    if panel.missing(run):
        return None
    series = [curve.read(run) for curve in panel.curves]
    log = panel.scale == "log" or (panel.scale == "auto" and all(_is_wide(*each) for each in series))
    return Plotted(
        log=log,
        curves=tuple(build(values, kinds, positive=log) for values, kinds in series),
        limit=_optional(panel.limit, run, log),
        strip=_optional(panel.strip, run, False),
        skipped=np.flatnonzero(skipped_or_declined(run)),
    )


def _optional(name: str | None, run: Run, positive: bool) -> Pyramid | None:
    if name is None or not run.recorded(name).any():
        return None
    return build(*column(name)(run), positive=positive)


def _is_wide(values: Floats, kinds: NDArray[np.uint8]) -> bool:
    finite = values if not kinds.any() else values[kinds == Kind.FINITE]
    return len(finite) > 0 and bool(finite.min() > 0) and bool(finite.max() / WIDE > np.median(finite))
