"""Where a row and a value stand in pixels, and which values deserve a label."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spikeview.run import Floats, Run

LARGEST, SMALLEST = sys.float_info.max, 5e-324
# Values nearer to each other than this share of their size, or than this, cannot be told apart on an axis.
NEAREST_SHARE, NEAREST = 1e-12, 1e-300
TRIES = 4  # for two round values, where as many as there is room for are only one
EVERY = (1, 2, 3, 5, 10, 20, 50, 100, 200, 700)


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
            inner = (
                np.log10(values) if self.log else values / 2
            )  # by halves: from end to end may be too far for a double
            low, high = self._ends
            found: Floats = self.bottom - (inner - low) / (high - low) * (self.bottom - self.top)
        return np.clip(found, self.top - 1e4, self.bottom + 1e4)

    def pixel(self, value: float) -> float:
        return float(self.pixels(np.array([value]))[0])

    @property
    def _ends(self) -> tuple[float, float]:
        return (math.log10(self.low), math.log10(self.high)) if self.log else (self.low / 2, self.high / 2)


def fitted(low: float, high: float, least_span: float, log: bool, top: float, bottom: float) -> Up:
    """A scale on which the values from low to high are seen whole, with some air."""
    if not low <= high:
        low, high = (0.1, 10.0) if log else (0.0, 1.0)
    if log:
        begin, end = math.log10(low), math.log10(high)
        air = max(0.08 * (end - begin), (1.0 - (end - begin)) / 2, 0.05)
        return Up(_ten_to(begin - air), _ten_to(end + air), top, bottom, log=True)
    share = 0.12 if least_span else 0.08
    high = max(high, low + least_span)
    air = share * high - share * low
    largest = max(abs(low), abs(high))
    if air <= max(NEAREST_SHARE * largest, NEAREST):
        air = max(0.1 * largest, NEAREST) if largest else 1.0
    return Up(max(low - air, -LARGEST), min(high + air, LARGEST), top, bottom)


def _ten_to(power: float) -> float:
    """The power of ten, or the double nearest to it."""
    return SMALLEST if power <= math.log10(SMALLEST) else LARGEST if power >= math.log10(LARGEST) else 10.0**power


def value_ticks(scale: Up, spacing: float) -> list[float]:
    """Round values at least so many pixels apart, but where there is little room: two make a scale, one does not."""
    room = max(2, int((scale.bottom - scale.top) / spacing))
    if not scale.log:
        found = (round_values(scale.low, scale.high, many) for many in range(room, room + TRIES))
        return next((each for each in found if len(each) >= 2), round_values(scale.low, scale.high, room))
    begin, end = math.log10(scale.low), math.log10(scale.high)
    widest = next(at for at, step in enumerate(EVERY) if step * room >= end - begin)
    for every in reversed(EVERY[: widest + 1]):
        decades = [10.0**power for power in range(math.ceil(begin), math.floor(end) + 1) if power % every == 0]
        if len(decades) >= 2:
            return decades
    for digits in ((1, 2, 5), (1, 5), (1, 3)):
        inside = _multiples(scale, digits)
        if len(inside) >= 2 and np.diff(-scale.pixels(np.array(inside))).min() >= spacing / 3:
            return inside
    return round_values(scale.low, scale.high, room)


def _multiples(scale: Up, digits: Sequence[int]) -> list[float]:
    """Every power of ten on a scale times each of some digits, rising."""
    powers = range(math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high)) + 1)
    found = [float(f"{digit}e{power}") for power in powers for digit in digits]
    return [value for value in found if scale.low <= value <= scale.high]


def round_values(low: float, high: float, room: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, no more than there is room for.

    None where the ends lie too near or too far apart for doubles to count between them.
    """
    room = max(1, room)
    raw = high / room - low / room
    if not NEAREST_SHARE * max(abs(low), abs(high)) / room < raw < LARGEST / 10 or raw < NEAREST / room:
        return [0.0] if low <= 0 <= high else []
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
