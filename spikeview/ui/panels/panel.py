"""What a panel declares: which columns it needs, what it draws of them, and what its head says of one row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spikeview.rules.diagnosis import View
from spikeview.run import Floats, Run
from spikeview.ui.spans import Span
from spikeview.ui.values import Cell

Scale = Literal["linear", "log", "auto"]
Series = tuple[Floats, NDArray[np.uint8]]


@dataclass(frozen=True)
class ByRow:
    """A reader of a series of which each cell comes of its own row alone, and of these columns.

    `own` says that the values are an array that the run keeps, and not one that is made of several.
    """

    columns: tuple[str, ...]
    make: Callable[[Run], Series]
    own: bool = False

    def __call__(self, run: Run) -> Series:
        return self.make(run)


@dataclass(frozen=True)
class Curve:
    """One line: the role of its colour, and its values and kinds, both [rows], read from a run.

    `dashed` is for a curve that may lie upon another: both are seen. `sparse` is for one that few rows have: its
    points are drawn large, and joined over the rows between.
    """

    role: str
    read: Callable[[Run], Series]
    dashed: bool = False
    sparse: bool = False


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One plot. `columns` are those it cannot do without; `head` is the text at its right for one row.

    `lacks` says what else a run has to have and has not, empty where nothing is missing. `weight` shares out the
    height; a panel that is not `shown` is there from the first time a user asks for it.
    """

    id: str
    title: str
    help: str
    head: Callable[[View, int], Sequence[Span]]
    columns: tuple[str, ...] = ()
    lacks: Callable[[Run], str] = lambda run: ""
    weight: int = 6
    shown: bool = False

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that its series are made of, as far as it says so."""
        return self.columns

    def missing(self, run: Run) -> tuple[str, ...]:
        """The needed columns of which the run holds no value."""
        return tuple(name for name in self.columns if not has_values(run, name))

    def reason(self, run: Run) -> str:
        """Why the panel has nothing to show of this run, in a few words; empty where it has."""
        missing = self.missing(run)
        return f"not recorded: {', '.join(missing)}" if missing else self.lacks(run)


@dataclass(frozen=True, kw_only=True)
class CurvePanel(Panel):
    """Curves on one axis of values; of some runs there are `more`.

    `scale` "auto" is log where all values are positive and the largest is over 100 times the median. `limits` fixes the
    range and `ticks` its labels; without them the visible values do, over at least `least_span`. `limit` is a column
    drawn as a dashed line, `strip` a factor from 0 to 1 drawn as a strip below, darker where lower.
    """

    curves: tuple[Curve, ...]
    more: Callable[[Run], tuple[Curve, ...]] = lambda run: ()
    scale: Scale = "linear"
    limits: tuple[float, float] | None = None
    ticks: tuple[float, ...] = ()
    least_span: float = 0.0
    signed: bool = False
    stairs: bool = False
    limit: str | None = None
    strip: str | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        return (*self.columns, *(name for name in (self.limit, self.strip) if name))


@dataclass(frozen=True, kw_only=True)
class HeatPanel(Panel):
    """A row of cells for each name, in log of its values: `read` gives names, positions and values of the cells."""

    read: Callable[[Run], Cells]


@dataclass(frozen=True, eq=False)
class Cells:
    """Values of named things on some rows: `values` is [names, positions], NaN where there is none.

    `positions` rise; `names` stand from top to bottom.
    """

    names: tuple[str, ...]
    positions: NDArray[np.int64]
    values: Floats


def has_values(run: Run, name: str) -> bool:
    """Whether any value of a column was recorded; no more is read than it takes to tell."""
    return run.holds(name)


def beside_baseline(found: Cell) -> list[Span]:
    """A value, then its baseline where it has one."""
    spans = [Span(found.text, found.role, fixed=True)]
    return [*spans, Span("   baseline "), Span(found.band, fixed=True)] if found.band else spans


def named(name: str, role: str, found: Cell, line: str = "──") -> list[Span]:
    """A value behind the name and the line of its curve, where a panel has several."""
    return [Span(line, role, fixed=True, bold=True), Span(f" {name} ", role), Span(found.text, found.role, fixed=True)]


def column(name: str) -> ByRow:
    """A reader of one column as it was recorded."""
    return ByRow((name,), lambda run: (run.values(name).astype(np.float64, copy=False), run.kind(name)), own=True)
