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
from spikeview.run import Floats, Kind, Run

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


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # values may be as large as a float can hold
def observe(run: Run) -> tuple[Mapping[str, Baseline], tuple[Observed, ...]]:
    """The baseline of every signal that was recorded, by column, and what left them, in causal order.

    Only rows that executed feed a baseline, and rows with nothing to execute (micro-steps before the last).
    """
    calm = calibrating(run)
    bad = nonfinite(run, "loss") | nonfinite(run, "grad_norm") | nonfinite_gradient(run)
    feeds = ~(skipped(run) | declined(run) | bad)
    baselines: dict[str, Baseline] = {}
    observed: list[Observed] = []
    for signal in SIGNALS:
        if not run.recorded(signal.column).any():
            continue
        measure = scale(run, signal)
        weight = baselines.get(signal.weight) if signal.weight else None
        light = _light(run, signal.weight, weight) if signal.weight and weight else np.zeros(len(run), dtype=np.bool_)
        judged = outliers(measure.apply(run.values(signal.column)), feeds, signal, light)
        baselines[signal.column] = baseline(judged.track, measure, judged.habitual)
        values = run.values(signal.column)
        if signal.column != "grad_norm":
            observed.append(Observed(signal.column, signal.phase, "nonfinite", nonfinite(run, signal.column), values))
        observed.append(Observed(signal.column, signal.phase, "outlier", judged.out, values, judged.track.deviation))
    observed += [_gradient(run, calm), _skips(run, calm), _still(run)]
    return baselines, tuple(observed)


def nonfinite_gradient(run: Run) -> Mask:
    """[rows]: a gradient is known to hold a NaN or Inf: by the count where it was recorded.

    Without a count a norm of NaN says so, and a step that the scaler or the loop left out for it; a norm of Inf does
    not, since a norm can overflow though every gradient is finite.
    """
    told = run.kind("grad_norm") == Kind.NAN
    told = told | run.equals("skip_reason", "amp_overflow") | run.equals("skip_reason", "nonfinite_grad")
    counted: Mask = run.recorded("grad_nonfinite_params")
    broken: Mask = np.where(counted, run.values("grad_nonfinite_params") > 0, told)
    return broken


def unknown_gradient(run: Run) -> Mask:
    """[rows]: a gradient of which it is not known whether it is finite."""
    norm = run.kind("grad_norm")
    silent = (norm == Kind.NOT_RECORDED) | (norm == Kind.POS_INF) | (norm == Kind.NEG_INF)
    unknown: Mask = silent & (run.kind("grad_nonfinite_params") == Kind.NOT_RECORDED) & ~nonfinite_gradient(run)
    return unknown


def overflowed_norm(run: Run) -> Mask:
    """[rows]: a norm of Inf over gradients that are all finite: the largest that there can be."""
    finite = run.recorded("grad_nonfinite_params") & (run.values("grad_nonfinite_params") == 0)
    overflowed: Mask = finite & (run.kind("grad_norm") == Kind.POS_INF)
    return overflowed


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
