"""What the figures draw: which rows, which marks, and long series thinned so that no spike is lost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.clocks import skipped_or_declined
from spikeview.analysis.envelope import envelope
from spikeview.analysis.pyramid import build
from spikeview.cells import Kind
from spikeview.rules.diagnosis import Diagnosed, View
from spikeview.run import Floats, Run

Positions = NDArray[np.intp]
MARGIN = 30
LONGEST = 400
PIXELS = 900
SMALLEST, LARGEST = 1e-200, 1e200  # with the room that an axis leaves around them


@dataclass(frozen=True)
class Frame:
    """Rows [start, stop) of a view on the step axis, or on the row axis where steps go back."""

    view: View
    start: int
    stop: int

    @property
    def run(self) -> Run:
        return self.view.run

    @property
    def axis(self) -> str:
        steps = self.run.values("step")
        rising = "step" in self.run and bool(self.run.recorded("step").all()) and bool(np.all(np.diff(steps) > 0))
        return "step" if rising else "row"

    @property
    def x(self) -> Floats:
        return self._along[self.start : self.stop]

    def at(self, position: int) -> float:
        return float(self._along[position])

    @cached_property
    def _along(self) -> Floats:
        if self.axis not in self.run:
            return np.arange(len(self.run), dtype=np.float64)
        return self.run.values(self.axis).astype(np.float64)


def marks(run: Run, name: str) -> dict[str, Mask]:
    """Where a column holds NaN or an infinity, and where the row was skipped."""
    kinds = run.kind(name)
    infinite = (kinds == Kind.POS_INF) | (kinds == Kind.NEG_INF)
    return {"nan": kinds == Kind.NAN, "inf": infinite, "skipped": skipped_or_declined(run)}


def finite(run: Run, name: str) -> Floats:
    """A column as floats, NaN wherever it is not a finite number: those cells are marks, not points of a line."""
    values = run.values(name).astype(np.float64)
    return np.where(run.kind(name) == Kind.FINITE, values, np.nan)


def drawable(values: Floats) -> Floats:
    """Values as far as they can be drawn: beyond lie doubles from whose ends no axis can be computed."""
    size = np.clip(np.abs(values), SMALLEST, LARGEST)
    return np.where(values == 0, 0.0, np.copysign(size, values))


def around(diagnosed: Diagnosed) -> tuple[int, int]:
    """Positions [start, stop) to show around an incident: its rows, the transition before, and a margin."""
    incident = diagnosed.incident
    first = incident.first_bad.position
    begin = first if diagnosed.transition is None else min(first, diagnosed.transition)
    last = min(incident.last, first + LONGEST)
    margin = max(MARGIN, min(last - first, LONGEST // 2))
    return max(0, begin - margin), min(len(diagnosed.view.run), last + margin + 1)


def thinned(x: Floats, values: Floats) -> tuple[Floats, Floats]:
    """The points of a line: all of a short series, else the least and the greatest of every column of pixels.

    NaN breaks the line, as it does where a column holds nothing finite.
    """
    if len(values) <= 4 * PIXELS:
        return x, values
    kinds = np.where(np.isnan(values), Kind.NOT_RECORDED, Kind.FINITE).astype(np.uint8)
    columns = envelope(build(values, kinds), 0, len(values), PIXELS)
    extremes = np.column_stack([columns.low, columns.high])
    extremes[~columns.drawn] = np.nan
    middle = x[(np.arange(PIXELS) * len(x) + len(x) // 2) // PIXELS]
    return np.repeat(middle, 2), extremes.ravel()


def one_per_pixel(positions: Positions, length: int) -> Positions:
    """The first of the positions in every column of pixels: a mark is never dropped, only drawn once."""
    if length <= 4 * PIXELS:
        return positions
    pixel = positions * PIXELS // length
    return positions[np.unique(pixel, return_index=True)[1]]


def isolated(values: Floats) -> Mask:
    """Finite values with no finite neighbour: a line draws nothing there."""
    here = np.isfinite(values)
    padded = np.concatenate(([False], here, [False]))
    return here & ~padded[:-2] & ~padded[2:]
