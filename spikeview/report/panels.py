"""The panels of a figure: what each of them draws, and in which colour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from spikeview.format import words
from spikeview.report.series import drawable, finite, thinned
from spikeview.report.theme import LIGHT
from spikeview.run import Floats, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DECADES = 1e3

Values = Callable[[Run], Floats]
Decoration = Callable[["Axes", Run, Floats, slice], None]


@dataclass(frozen=True)
class Line:
    """One line of a panel; NaN in its values is a break."""

    id: str
    label: str
    color: str
    values: Values
    steps: bool = False
    width: float = 1.2


def _nothing(axes: Axes, run: Run, x: Floats, rows: slice) -> None:
    """Most panels are their lines."""


@dataclass(frozen=True)
class Panel:
    """A title, lines, the signal whose bad rows are marked, and whether skipped rows are marked too.

    `scale` is `linear`, `log`, or `auto`: logarithmic where a positive signal spans three decades.
    """

    id: str
    title: str
    signal: str
    lines: tuple[Line, ...]
    height: float
    scale: str = "linear"
    marks_skipped: bool = False
    absent: str = "not recorded"
    decorate: Decoration = _nothing
    columns: tuple[str, ...] = ()

    def reading(self, run: Run, position: int) -> str:
        """The values of one row in words."""
        names = self.columns or (self.signal,)
        texts = [words(run, name, position) for name in names]
        return (
            texts[0]
            if len(names) == 1
            else ", ".join(f"{name.removesuffix('_n')} {text}" for name, text in zip(names, texts, strict=True))
        )

    def is_log(self, known: Floats) -> bool:
        if self.scale == "linear" or not len(known) or not (known > 0).any():
            return False
        return self.scale == "log" or bool(known.min() > 0 and known.max() / DECADES > known.min())


def column(name: str) -> Values:
    """The finite values of a column."""
    return partial(finite, name=name)


def _ahead(run: Run, name: str) -> Floats:
    """By how much a clock is ahead of the executed steps."""
    both = run.recorded(name) & run.recorded("executed_n")
    return np.where(both, run.values(name) - run.values("executed_n").astype(np.float64), np.nan)


def _clipping(axes: Axes, run: Run, x: Floats, rows: slice) -> None:
    """max_norm as a dashed line; under it, how hard the gradient was cut (darker is harder)."""
    limit = drawable(finite(run, "max_norm")[rows])
    if np.isfinite(limit).any():
        axes.plot(*thinned(x, limit), color=LIGHT["norm"], lw=1, ls=(0, (5, 3)), alpha=0.8, gid="max-norm")
        at = int(np.flatnonzero(np.isfinite(limit))[-1])
        axes.annotate(
            "max_norm",
            (x[at], limit[at]),
            xytext=(0, 2),
            textcoords="offset points",
            ha="right",
            fontsize=7.5,
            color=LIGHT["muted"],
        )
    across, coefficient = thinned(x, finite(run, "clip_coef")[rows])
    cut = coefficient < 1
    if cut.any():
        strength = np.clip(-np.log10(np.maximum(coefficient[cut], 1e-300)) / 3, 0.25, 1)
        colors = [(LIGHT["coefficient"], float(part)) for part in strength]
        width = max(1.0, min(6.0, 600 / len(x)))
        axes.vlines(
            across[cut], 0, 0.06, colors=colors, lw=width, transform=axes.get_xaxis_transform(), gid="clip-coef"
        )


def _bounds(axes: Axes, run: Run, x: Floats, rows: slice) -> None:
    axes.set_ylim(-1.1, 1.1)
    axes.set_yticks([-1, 0, 1], ["-1", "0", "+1"])


def _whole_numbers(axes: Axes, run: Run, x: Floats, rows: slice) -> None:
    """At least three counts high, wherever the counts are: one skip is seen after thousands of them."""
    from matplotlib.ticker import MaxNLocator

    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.3, max(high + 0.3, low + 2.7))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))


PANELS: tuple[Panel, ...] = (
    Panel("loss", "Loss", "loss", (Line("loss", "loss", LIGHT["loss"], column("loss")),), 1.45, scale="auto"),
    Panel(
        "norm",
        "Pre-clip gradient norm",
        "grad_norm",
        (Line("norm", "norm", LIGHT["norm"], column("grad_norm")),),
        1.45,
        scale="log",
        decorate=_clipping,
    ),
    Panel(
        "clocks",
        "Clocks: how far ahead of the executed steps",
        "executed_n",
        (
            Line(
                "attempted",
                "attempted − executed",
                LIGHT["attempted"],
                partial(_ahead, name="attempted_n"),
                steps=True,
                width=3.2,
            ),
            Line(
                "scheduled", "scheduled − executed", LIGHT["scheduled"], partial(_ahead, name="scheduled_n"), steps=True
            ),
        ),
        0.95,
        marks_skipped=True,
        decorate=_whole_numbers,
        columns=("attempted_n", "executed_n", "scheduled_n"),
    ),
    Panel(
        "alignment",
        "Alignment: cosine of the update with the negative gradient",
        "update_cosine",
        (Line("cosine", "cosine", LIGHT["cosine"], column("update_cosine")),),
        0.95,
        marks_skipped=True,
        decorate=_bounds,
    ),
)
