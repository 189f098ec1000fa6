"""Checks on mixed precision: skips, the loss scale, and the order of unscaling and clipping."""

from __future__ import annotations

import numpy as np

from recorder.schema import Mask
from spikeview.analysis.clocks import calibrating, declined, skipped
from spikeview.analysis.observations import nonfinite_gradient, unknown_gradient
from spikeview.format import scalar
from spikeview.rules.finding import Outcome
from spikeview.rules.verdict import Answer, passed, unknown
from spikeview.rules.wording import name_rows
from spikeview.run import Kind, Run

WINDOW = 1000
RATE = 0.05
MOST = 0.5
FEW = 10


def skip_rate(run: Run) -> Answer:
    """More than RATE of some WINDOW attempts were skipped, or declined for what loss or gradient held.

    Fewer attempts than WINDOW give no rate worth a verdict, save where it is far over: MOST of FEW or more were skipped
    when the skips by which a scaler finds its level are left out.
    """
    known = run.recorded("attempted") & run.recorded("executed")
    if not known.any():
        absent = [name for name in ("attempted", "executed") if not run.recorded(name).any()]
        return unknown(*absent or ["attempted", "executed"])
    skips = (skipped(run) | declined(run)) & known
    tries = np.flatnonzero((run.values("attempted") | skips) & known)
    total = np.concatenate([[0], np.cumsum(skips[tries])])
    width = min(WINDOW, len(tries))
    worst = int(np.max(total[width:] - total[: len(total) - width])) if width else 0
    counts = f"{int(total[-1]):,} of {len(tries):,} attempts skipped"
    settled = tries[~calibrating(run)[tries]]
    mostly = len(settled) >= FEW and np.mean(skips[settled]) > MOST
    if worst > RATE * WINDOW or mostly:
        within = f"; up to {worst:,} within {width:,}" if width < len(tries) else ""
        return Answer(Outcome.FAILED, counts + within, tries[skips[tries]])
    if worst > RATE * width:
        return Answer(Outcome.CANNOT_TELL, f"{counts}: too few to judge a rate that holds for {WINDOW:,}")
    column = "executed" if run.recorded("attempted").all() else "attempted"
    return passed(run, counts, column, ~known)


def scale_never_updates(run: Run) -> Answer:
    """The scale never fell after a non-finite gradient: `update()` is never reached on them."""
    if not run.recorded("loss_scale").any():
        return _no_scaler(run)
    scaled = run.recorded("loss_scale") & ~_idle(run)
    rows = np.flatnonzero(scaled)
    scales, segments = run.values("loss_scale")[rows], run.values("segment")[rows] if "segment" in run else 0 * rows
    broken = nonfinite_gradient(run)[rows]
    judged = np.flatnonzero(broken[:-1] & (np.diff(segments) == 0))
    untold = scaled & unknown_gradient(run)
    if not len(judged):
        return passed(run, "no non-finite gradient to answer", "grad_nonfinite_params", untold)
    answered = int(np.count_nonzero(scales[judged + 1] < scales[judged]))
    if answered:
        return Answer(Outcome.PASSED, f"the scale fell after {answered:,} of {len(judged):,} non-finite gradients")
    first, bad = judged[0], rows[broken]
    return Answer(
        Outcome.FAILED,
        f"scale {_scale(scales[first])} did not fall after the non-finite gradients at {name_rows(run, bad)}",
        bad,
    )


def clip_before_unscale(run: Run) -> Answer:
    """The loop clipped or measured gradients that were still multiplied by the loss scale."""
    if not run.recorded("loss_scale").any():
        return _no_scaler(run)
    known = run.recorded("grad_norm_is_unscaled")
    if not known.any():
        return unknown("grad_norm_is_unscaled")
    scaled = run.recorded("loss_scale") & (run.values("loss_scale") != 1)
    early = np.flatnonzero(known & ~run.values("grad_norm_is_unscaled") & scaled)
    if not len(early):
        untold = scaled & (run.kind("grad_norm_is_unscaled") == Kind.NOT_RECORDED)
        return passed(run, "unscaled first", "grad_norm_is_unscaled", untold)
    scale = _scale(run.values("loss_scale")[early[0]])
    return Answer(Outcome.FAILED, f"gradients still multiplied by {scale} at {name_rows(run, early)}", early)


def _idle(run: Run) -> Mask:
    """Rows without an attempt, save those declined for a gradient: micro-steps before the last say nothing."""
    return run.recorded("attempted") & ~run.values("attempted").astype(np.bool_) & ~declined(run)


def _scale(value: float) -> str:
    return scalar("loss_scale", float(value))


def _no_scaler(run: Run) -> Answer:
    told = "loss_scale" in run and not run.equals("skip_reason", "amp_overflow").any()
    return Answer(Outcome.NOT_APPLICABLE, "no loss scale") if told else unknown("loss_scale")
