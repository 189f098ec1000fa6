"""Observed: where one signal was bad for one reason; and what rows show by themselves, without a baseline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recorder.schema import Mask
from spikeview.analysis.clocks import skipped
from spikeview.analysis.gradients import nonfinite_gradient
from spikeview.analysis.jumps import lost_gradients, steep_rates
from spikeview.analysis.lazy import Column
from spikeview.analysis.rates import rates
from spikeview.analysis.signals import Signal, lost_loss, nonfinite
from spikeview.run import Floats, Run


@dataclass(frozen=True)
class Observed:
    """One signal and one reason: all but names are [rows]; `deviation` only of outliers and drifts.

    `held` says where a signal that left has not come back yet, though not every row of it is out.
    """

    signal: str
    phase: str
    reason: str
    mask: Mask
    values: Floats
    deviation: Column | None = None
    held: Mask | None = None


def shown(run: Run, calm: Mask) -> list[Observed]:
    """What the rows show by themselves; where they are `calm` a skip or an overflow is the scaler's own."""
    return [_gradient(run, calm), _cut_off(run), _skips(run, calm), _still(run), _rate(run)]


def broken(run: Run, signal: Signal) -> Observed:
    """A signal that is not a finite number."""
    mask = lost_loss(run) if signal.column == "loss" else nonfinite(run, signal.column)
    return Observed(signal.column, signal.phase, "nonfinite", mask, run.values(signal.column))


def _gradient(run: Run, calm: Mask) -> Observed:
    """Rows that say so themselves: of a skip without a norm and a count it is only known that it was skipped."""
    told = run.recorded("grad_norm") | run.recorded("grad_nonfinite_params")
    bad = told & (nonfinite_gradient(run) | nonfinite(run, "grad_norm")) & ~(calm & ~nonfinite(run, "loss"))
    column = "grad_norm" if run.recorded("grad_norm").any() else "grad_nonfinite_params"
    return Observed(column, "backward", "nonfinite", bad, run.values(column).astype(np.float64))


def _skips(run: Run, calm: Mask) -> Observed:
    return Observed("executed", "update", "skipped", skipped(run) & ~calm, np.zeros(len(run)))


def _still(run: Run) -> Observed:
    """Executed and moved nothing, save at the start of a warm-up from a learning rate of zero."""
    still = run.values("executed") & run.recorded("moved") & ~run.values("moved")
    moving = np.flatnonzero(run.values("moved"))
    if len(moving):
        still[: moving[0]] &= run.values("lr")[: moving[0]] != 0
    return Observed("moved", "update", "not_moved", still, np.zeros(len(run)))


def _cut_off(run: Run) -> Observed:
    """Parameters that had gradients and have none any more."""
    column = "grad_none_params"
    return Observed(column, "backward", "jump", lost_gradients(run), run.values(column).astype(np.float64))


def _rate(run: Run) -> Observed:
    """A learning rate far over any before."""
    return Observed("lr", "update", "jump", steep_rates(run, rates(run)), run.values("lr"))
