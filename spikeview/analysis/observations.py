"""Observations of a whole run: each signal leaving its baseline or the finite numbers, as masks over the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from recorder.schema import Mask
from spikeview.analysis.baseline import Baseline, baseline
from spikeview.analysis.clocks import calibrating, declined, skipped
from spikeview.analysis.outliers import outliers
from spikeview.analysis.signals import SIGNALS, nonfinite, scale
from spikeview.run import Floats, Run

HALF = 0.5


@dataclass(frozen=True)
class Observed:
    """One signal and one reason: `mask`, `values` and `deviation` are [rows]; `deviation` only of outliers."""

    signal: str
    phase: str
    reason: str
    mask: Mask
    values: Floats
    deviation: Floats | None = None


def observe(run: Run) -> tuple[Mapping[str, Baseline], tuple[Observed, ...]]:
    """The baseline of every signal that was recorded, by column, and what left them, in causal order.

    Only rows that executed feed a baseline, and rows with nothing to execute (micro-steps before the last).
    """
    calm = calibrating(run)
    feeds = ~(skipped(run) | declined(run) | nonfinite(run, "loss") | nonfinite_gradient(run))
    baselines: dict[str, Baseline] = {}
    observed: list[Observed] = []
    for signal in SIGNALS:
        if not run.recorded(signal.column).any():
            continue
        measure = scale(run, signal)
        weight = baselines.get(signal.weight) if signal.weight else None
        light = _light(run, signal.weight, weight) if signal.weight and weight else np.zeros(len(run), dtype=np.bool_)
        out, track = outliers(measure.apply(run.values(signal.column)), feeds, signal, light)
        baselines[signal.column] = baseline(track, measure)
        values = run.values(signal.column)
        if signal.column != "grad_norm":
            observed.append(Observed(signal.column, signal.phase, "nonfinite", nonfinite(run, signal.column), values))
        observed.append(Observed(signal.column, signal.phase, "outlier", out, values, track.deviation))
    observed += [_gradient(run, calm), _skips(run, calm), _still(run)]
    return baselines, tuple(observed)


def nonfinite_gradient(run: Run) -> Mask:
    """[rows]: a gradient holds a NaN or Inf: by the count where it was recorded, else by the norm.

    A norm can overflow though every gradient is finite, so the count has the last word.
    """
    counted = run.recorded("grad_nonfinite_params")
    return np.where(counted, run.values("grad_nonfinite_params") > 0, nonfinite(run, "grad_norm"))


def _gradient(run: Run, calm: Mask) -> Observed:
    bad = (nonfinite_gradient(run) | nonfinite(run, "grad_norm")) & ~(calm & ~nonfinite(run, "loss"))
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


def _light(run: Run, column: str, weight: Baseline) -> Mask:
    with np.errstate(invalid="ignore"):
        return run.values(column) < HALF * weight.center
