"""Where a row and a value stand in pixels, and which values deserve a label."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spikeview.run import Floats, Run


@dataclass(frozen=True)
class Across:
    """Positions of rows along a width of pixels that begins at `left`."""

    first: float
    last: float
    left: float
    width: float

    def pixel(self, position: float) -> float:
        return self.left + (position - self.first) / (self.last - self.first) * self.width

    def pixels(self, positions: NDArray[np.generic]) -> Floats:
        found: Floats = self.left + (positions.astype(np.float64) - self.first) / (self.last - self.first) * self.width
        return found

    def position(self, pixel: float) -> float:
        return self.first + (pixel - self.left) / self.width * (self.last - self.first)

    @property
    def rows_per_pixel(self) -> float:
        return (self.last - self.first) / self.width


@dataclass(frozen=True)
class Up:
    """Values along a height of pixels, `low` at `bottom` and `high` at `top`; `log` in decades."""

    low: float
    high: float
    top: float
    bottom: float
    log: bool = False

    def pixels(self, values: Floats) -> Floats:
        """Values within Qt's reach even where they are far outside."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inner = np.log10(values) if self.log else values
            low, high = self._ends
            found: Floats = self.bottom - (inner - low) / (high - low) * (self.bottom - self.top)
        return np.clip(found, self.top - 1e4, self.bottom + 1e4)

    def pixel(self, value: float) -> float:
        return float(self.pixels(np.array([value]))[0])

    @property
    def _ends(self) -> tuple[float, float]:
        return (math.log10(self.low), math.log10(self.high)) if self.log else (self.low, self.high)


def fitted(low: float, high: float, least_span: float, log: bool, top: float, bottom: float) -> Up:
    """A scale on which the values from low to high are seen whole, with some air."""
    if not low <= high:
        low, high = (0.1, 10.0) if log else (0.0, 1.0)
    if log:
        begin, end = math.log10(low), math.log10(high)
        air = max(0.08 * (end - begin), (1.0 - (end - begin)) / 2, 0.05)
        return Up(10 ** max(begin - air, -300), 10 ** min(end + air, 300), top, bottom, log=True)
    low, high = max(low, -1e300), min(high, 1e300)
    if least_span:
        high = max(high, low + least_span)
        air = 0.12 * (high - low)
    else:
        air = 0.08 * (high - low) or abs(high) * 0.1 or 1.0
    return Up(low - air, high + air, top, bottom)


def value_ticks(scale: Up, spacing: float) -> list[float]:
    """Round values at least so many pixels apart, but where there is little room: two make a scale, one does not."""
    room = max(2, int((scale.bottom - scale.top) / spacing))
    if not scale.log:
        return round_values(scale.low, scale.high, room)
    begin, end = math.log10(scale.low), math.log10(scale.high)
    every = next(step for step in (1, 2, 3, 5, 10, 20, 50, 100, 200, 700) if step * room >= end - begin)
    decades = [10.0**power for power in range(math.ceil(begin), math.floor(end) + 1) if power % every == 0]
    if len(decades) >= 2 or (decades and every > 1):
        return decades
    finer = [digit * 10.0**power for power in range(math.floor(begin), math.ceil(end) + 1) for digit in (1, 2, 5)]
    inside = [value for value in finer if scale.low <= value <= scale.high]
    return inside if len(inside) >= 2 else round_values(scale.low, scale.high, room)


def round_values(low: float, high: float, room: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, no more than there is room for."""
    span = high - low
    raw = span / max(1, room)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))
    return [number * step for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def value_label(value: float, ticks: Sequence[float], log: bool = False, signed: bool = False) -> str:
    """A tick's text; on a linear axis all are written to the same decimals."""
    if value == 0:
        return "0"
    sign = "+" if signed and value > 0 else ""
    if not 1e-3 <= abs(value) < (1e4 if log else 1e5):
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{sign}{mantissa.removesuffix('.0')}e{int(exponent)}"
    if log:
        return f"{sign}{value:g}"
    step = min((abs(b - a) for a, b in pairwise(ticks)), default=abs(value))
    return f"{sign}{value:.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"


@dataclass(frozen=True, eq=False)
class Steps:
    """The step of every row, [rows], and whether it never goes back."""

    values: NDArray[np.int64]
    rising: bool

    @classmethod
    def of(cls, run: Run) -> Steps:
        """The loop's own steps, the row numbers where they were not recorded, else the positions."""
        name = "step" if run.recorded("step").all() else "row"
        values = run.values(name) if name in run else np.arange(len(run))
        return cls(values, bool((values[1:] >= values[:-1]).all()))


def step_ticks(steps: Steps, across: Across, spacing: float) -> list[tuple[int, int]]:
    """Positions to label and the step at each: round steps where steps rise, round positions where they go back."""
    begin, end = max(0, math.ceil(across.first)), min(len(steps.values) - 1, math.floor(across.last))
    if end < begin:
        return []
    room = max(1, int(across.width / spacing))
    low, high = (int(steps.values[begin]), int(steps.values[end])) if steps.rising else (begin, end)
    wanted = [round(value) for value in round_values(low, high, room) if value == round(value)] if high > low else [low]
    positions = [int(np.searchsorted(steps.values, value)) for value in wanted] if steps.rising else wanted
    found = [(position, int(steps.values[position])) for position in positions]
    exact = [each for each, value in zip(found, wanted, strict=True) if not steps.rising or each[1] == value]
    return exact or [(begin, int(steps.values[begin]))]
