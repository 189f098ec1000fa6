"""What the window writes in a cell, and in which colour: short text for columns of numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from spikeview.format import label, mads
from spikeview.rules.diagnosis import Diagnosed, View
from spikeview.run import Kind, Run

OUTSIDE, FAR = 3.0, 5.0
NOT_RECORDED, NONE = "ø", "—"

# where a narrow column has no room for the name that the report uses
SHORT = {
    "grad_norm": "grad norm",
    "top_group_share": "top group",
    "clip_coef": "coefficient",
    "lr": "lr",
    "scheduled": "scheduled",
}


def short(column: str) -> str:
    """A column's name in a few letters."""
    return SHORT.get(column, label(column))


@dataclass(frozen=True)
class Cell:
    """Text, the role of its colour, the baseline's text and the distance from it in MADs, where there are any."""

    text: str
    role: str = "text"
    baseline: str = NONE
    deviation: float | None = None
    spread: str = ""

    @property
    def away(self) -> str:
        """`+9.8 MAD`, empty without a baseline."""
        return "" if self.deviation is None else f"{mads(self.deviation)} MAD"


def compact(value: float, column: str = "") -> str:
    """A finite number in about six characters: `2.214`, `0.947`, `3.4e-3`, `65536`, `+0.58`."""
    if column == "update_cosine":
        return f"{value:+.2f}"
    if column == "clip_coef":
        return f"{value:.3f}" if value >= 0.001 or value == 0 else _exponent(value)
    if value == 0:
        return "0"
    size = abs(value)
    if column == "update_ratio" and size < 0.01:
        return _exponent(value)
    if value == round(value) and size < 1e7:
        return f"{value:.0f}" if size >= 1000 or column == "loss_scale" else f"{value:.3f}"[:5]
    if size >= 1e5 or size < 1e-3:
        return _exponent(value, 2 if column == "lr" else 1)
    if size < 0.01:
        return f"{value:.3g}" if column == "lr" else _exponent(value, 2)
    if size < 0.1:
        return f"{value:.4f}"
    return f"{value:.{min(3, max(0, 3 - math.floor(math.log10(size))))}f}"


def cell(view: View, column: str, position: int) -> Cell:
    """One cell of one of the five kinds, judged by its baseline."""
    run = view.run
    kind = Kind(int(run.kind(column)[position]))
    baseline = view.baselines.get(column)
    center = float(baseline.center[position]) if baseline is not None else math.nan
    base = NONE if math.isnan(center) else compact(center, column)
    spread = ""
    if baseline is not None and not math.isnan(center):
        spread = compact(float(baseline.upper[position] - baseline.lower[position]) / 2)
    if kind == Kind.FINITE:
        value = run.values(column)[position]
        deviation = float(baseline.deviation[position]) if baseline is not None else math.nan
        away = None if math.isnan(deviation) else deviation
        return Cell(_text(value, column), role(away), base, away, spread)
    text, colour = _WITHOUT_NUMBER[kind]
    return Cell(text, colour, base, None, spread)


_WITHOUT_NUMBER = {
    Kind.NAN: ("NaN ◆", "bad"),
    Kind.POS_INF: ("Inf ▲", "bad"),
    Kind.NEG_INF: ("-Inf ▲", "bad"),
    Kind.NOT_APPLICABLE: ("n/a", "muted"),
    Kind.NOT_RECORDED: (NOT_RECORDED, "muted"),
}


def role(deviation: float | None) -> str:
    """Amber beyond 3 MADs, red beyond 5."""
    distance = 0.0 if deviation is None else abs(deviation)
    return "bad" if distance > FAR else "warn" if distance > OUTSIDE else "text"


def severity_role(diagnosed: Diagnosed) -> str:
    """Red for critical, amber for a warning."""
    return "bad" if diagnosed.incident.severity == "critical" else "warn"


def _text(value: object, column: str) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, float, np.integer, np.floating)):
        return compact(float(value), column)
    return str(value)


def step_label(run: Run, position: int) -> str:
    """`8,219`, with the place within the step where it is not the first; the row where no step was recorded."""
    name = "step" if run.recorded("step")[position] else "row"
    text = f"{int(run.values(name)[position]):,}" if name in run else f"{position:,}"
    micro = int(run.values("micro_step")[position]) if run.recorded("micro_step")[position] else 0
    return f"{text}.{micro}" if micro else text


def _exponent(value: float, digits: int = 1) -> str:
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{mantissa}e{int(exponent)}"
