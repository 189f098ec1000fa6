"""SIGNALS: the columns that are watched, on what scale, and how far out is too far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.trailing import TREND
from spikeview.cells import Kind
from spikeview.meaning import KEPT, is_log, meaning
from spikeview.run import Floats, Run, row_by_row

HIGH, LOW = 1, -1
# The size of updates wanders, and hardly differs from row to row: a long trend would be far behind it.
SHORT_TREND = 5
ALMOST_ALL = 0.99


@dataclass(frozen=True)
class Signal:
    """One watched column.

    `side` is the side on which leaving the baseline is bad, `threshold` how many MADs out is too far, `floor` the
    smallest MAD taken seriously: below it lie rounding and sampling. Logs make a positive quantity's factors
    comparable; `relative_to` is divided out first; `unfit` says on which rows the value's own units are not known. The
    next three hold for the direction of an update alone: it must also pass `bound`, on `streak` values in a row, and
    has no say where `weight` is under half of its own baseline. `trend` is over how many rows its trend is taken;
    `drifts` says whether a level that rises slowly is bad too.
    """

    column: str
    phase: str
    side: int
    log: bool
    floor: float
    threshold: float
    relative_to: str | None = None
    unfit: Callable[[Run], Mask] | None = None
    bound: float | None = None
    streak: int = 1
    trend: int = TREND
    drifts: bool = False
    weight: str | None = None


@row_by_row
def still_scaled(run: Run) -> Mask:
    """[rows]: where the norm may still be multiplied by the loss scale.

    The recorder divides the scale out of what it measures or is told; it cannot for a norm seen only at the step.
    """
    scaled = run.recorded("grad_norm_is_unscaled") & ~run.values("grad_norm_is_unscaled").astype(np.bool_)
    return scaled & ~(run.equals("grad_norm_source", "recorder") | run.equals("grad_norm_source", "observed"))


# One update against its own gradient is ordinary with small batches (7 to 14 % of them at batch 8 and below), and a
# vanishing gradient has no direction to speak of; two opposed updates in a row out of a positive baseline are neither.
# fmt: off
SIGNALS: tuple[Signal, ...] = (
    Signal("loss", "forward", HIGH, log=True, floor=0.02, threshold=5.5, drifts=True),
    Signal("grad_norm", "backward", HIGH, log=True, floor=0.1, threshold=6, unfit=still_scaled),
    Signal("update_ratio", "update", HIGH, log=True, floor=0.1, threshold=6.5, relative_to="lr", trend=SHORT_TREND),
    Signal("update_cosine", "update", LOW, log=False, floor=0.05, threshold=5,
           bound=-0.25, streak=2, weight="grad_norm"),
)
# fmt: on

PHASES = ("forward", "backward", "update")


@dataclass(frozen=True)
class Scale:
    """From a column's own units to the ones it is judged in, and back. `unit` is one number or [rows]."""

    log: bool
    unit: Floats | float

    def apply(self, values: Floats) -> Floats:
        """[rows]; NaN where a value has no place on the scale (not positive, in logs) or is not finite."""
        with np.errstate(all="ignore"):
            scaled = values / self.unit
            if self.log:
                scaled = np.log(scaled)
        return np.where(np.isfinite(scaled), scaled, np.nan)

    def part(self, rows: slice) -> Scale:
        """Of a few rows."""
        return Scale(self.log, self.unit[rows] if isinstance(self.unit, np.ndarray) else self.unit)

    def goes_on(self, before: Scale) -> bool:
        """Whether it judges rows that are as they were by what they were judged by before."""
        arrays = isinstance(self.unit, np.ndarray), isinstance(before.unit, np.ndarray)
        return self.log == before.log and (all(arrays) or (not any(arrays) and self.unit == before.unit))

    def undo(self, scaled: Floats, rows: NDArray[np.int64]) -> Floats:
        """What stands at these rows, in the column's own units."""
        unit = self.unit[rows] if isinstance(self.unit, np.ndarray) else self.unit
        with np.errstate(over="ignore"):
            return (np.exp(scaled) if self.log else scaled) * unit


def scale(run: Run, signal: Signal) -> Scale:
    """The scale of a signal in this run: linear, in units of its usual size, where too much of it is not positive.

    Where the units of a value are not known its unit is NaN, and so is all that is derived from it.
    """
    usual = _usual_scale(run, signal)
    if signal.unfit is None or not (unfit := signal.unfit(run)).any():
        return usual
    return Scale(usual.log, np.where(unfit, np.nan, usual.unit))


def _usual_scale(run: Run, signal: Signal) -> Scale:
    if not signal.log:
        return Scale(False, 1.0)
    values, finite = run.values(signal.column), run.kind(signal.column) == Kind.FINITE
    count = np.count_nonzero(finite)
    if count and np.count_nonzero(finite & (values > 0)) / count < ALMOST_ALL:
        return Scale(False, float(np.median(np.abs(values[finite]))) or 1.0)
    if signal.relative_to is None or not run.recorded(signal.relative_to).any():
        return Scale(True, 1.0)
    return Scale(True, run.values(signal.relative_to))


def nonfinite(run: Run, column: str) -> Mask:
    """[rows]: where a column holds NaN or an infinity."""
    return run.made(f"nonfinite {column}", lambda run: is_nonfinite(run.kind(column)))


@row_by_row
def lost_loss(run: Run) -> Mask:
    """[rows]: where the loss is NaN or infinite, also where a log has 0 in its place."""
    return nonfinite(run, "loss") | masked_loss(run)


def masked_loss(run: Run) -> Mask:
    """[rows]: a log's loss of exactly 0 beside a norm that is not finite: its writer leaves NaN out of the mean."""
    said = meaning(run, "loss")
    if not is_log(run) or (said is not None and said.nonfinite == KEPT):
        return np.zeros(len(run), dtype=np.bool_)
    masked: Mask = run.recorded("loss") & (run.values("loss") == 0) & nonfinite(run, "grad_norm")
    return masked


def is_nonfinite(kinds: NDArray[np.uint8]) -> Mask:
    """Of kinds of cells, those that are NaN or an infinity."""
    bad: Mask = (kinds >= Kind.NAN) & (kinds <= Kind.NEG_INF)
    return bad
