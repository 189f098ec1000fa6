"""Checks on mixed precision: skips, the loss scale, and the order of unscaling and clipping."""

from __future__ import annotations

import numpy as np

from spikeview.analysis.clocks import declined, skipped
from spikeview.analysis.observations import nonfinite_gradient
from spikeview.format import scalar
from spikeview.rules.finding import Outcome
from spikeview.rules.verdict import Answer, unknown
from spikeview.rules.wording import name_rows
from spikeview.run import Run

WINDOW = 1000
RATE = 0.05


def skip_rate(run: Run) -> Answer:
    """More than RATE of some WINDOW attempts were skipped, or declined for what loss or gradient held."""
    known = run.recorded("attempted") & run.recorded("executed")
    if not known.any():
        return unknown("attempted", "executed")
    skips = (skipped(run) | declined(run)) & known
    tries = np.flatnonzero((run.values("attempted") | skips) & known)
    total = np.concatenate([[0], np.cumsum(skips[tries])])
    width = min(WINDOW, len(tries))
    worst = int(np.max(total[width:] - total[: len(total) - width])) if width else 0
    counts = f"{int(total[-1]):,} of {len(tries):,} attempts skipped"
    if worst <= RATE * WINDOW:
        return Answer(Outcome.PASSED, counts + ("" if len(tries) >= WINDOW else f" (judged over {WINDOW:,})"))
    return Answer(Outcome.FAILED, f"{counts}; up to {worst:,} within {width:,}", tries[skips[tries]])


def scale_never_updates(run: Run) -> Answer:
    """The scale stayed what it was through non-finite gradients: `update()` is never reached on them."""
    scaled = np.flatnonzero(run.recorded("loss_scale"))
    if not len(scaled):
        return _no_scaler(run)
    scales = run.values("loss_scale")[scaled]
    broken = scaled[nonfinite_gradient(run)[scaled]]
    answered = broken[broken < scaled[-1]]
    if not len(answered):
        return Answer(Outcome.PASSED, "no non-finite gradient to answer")
    if scales.min() < scales.max():
        return Answer(Outcome.PASSED, f"scale {_scale(scales.min())} to {_scale(scales.max())}")
    return Answer(
        Outcome.FAILED,
        f"scale {_scale(scales[0])} throughout, with non-finite gradients at {name_rows(run, broken)}",
        broken,
    )


def clip_before_unscale(run: Run) -> Answer:
    """The loop clipped or measured gradients that were still multiplied by the loss scale."""
    if not run.recorded("loss_scale").any():
        return _no_scaler(run)
    known = run.recorded("grad_norm_is_unscaled")
    if not known.any():
        return unknown("grad_norm_is_unscaled")
    early = np.flatnonzero(known & ~run.values("grad_norm_is_unscaled") & (run.values("loss_scale") != 1))
    if not len(early):
        return Answer(Outcome.PASSED, "unscaled first")
    scale = _scale(run.values("loss_scale")[early[0]])
    return Answer(Outcome.FAILED, f"gradients still multiplied by {scale} at {name_rows(run, early)}", early)


def _scale(value: float) -> str:
    return scalar("loss_scale", float(value))


def _no_scaler(run: Run) -> Answer:
    return Answer(Outcome.NOT_APPLICABLE, "no loss scale") if "loss_scale" in run else unknown("loss_scale")
