"""Checks on clipping: before or after the step, of which gradients, and how often."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spikeview.analysis.gradients import nonfinite_gradient
from spikeview.cells import Kind, chosen
from spikeview.format import number, plural
from spikeview.rules.finding import Outcome
from spikeview.rules.limits import NOTHING_CLIPPED, PINNED, norm_logged_after_clip
from spikeview.rules.steps import micro_steps, optimizer_settings
from spikeview.rules.verdict import Answer, too_few, unknown, untold
from spikeview.rules.wording import name_rows
from spikeview.run import Run

ALWAYS = 0.95
ENOUGH = 50


def clip_after_step(run: Run) -> Answer:
    """A limit was set and no gradient was cut to it before its step: the clipping came after, or never.

    What a loop clips after the step belongs to no row. Where the recorder was given no limit and the norm was first
    seen at the step, the loop may clip by itself, before the step or after it.
    """
    limit = _limit(run)
    stepped = run.values("executed").astype(np.bool_) & ~nonfinite_gradient(run)
    clipped = run.recorded("max_norm") | run.recorded("clip_coef")
    if (clipped & (stepped | ~run.recorded("executed"))).any():
        return Answer(Outcome.PASSED, f"clipped before the step on {plural(int(np.count_nonzero(clipped)), 'row')}")
    if "max_norm" not in run or not run.recorded("executed").any():
        return unknown(*(name for name in ("max_norm", "executed") if not run.recorded(name).any()))
    rows = np.flatnonzero(stepped)
    late = np.flatnonzero(stepped & run.equals("grad_norm_source", "at_step"))
    if limit is not None and len(rows):
        over = rows[run.values("grad_norm")[rows] > (1 + PINNED) * limit]
        text = f"max_norm {number(limit)} was set, and none of {plural(len(rows), 'executed step')} was clipped before"
        if len(over):
            text = f"{text}, though {len(over):,} of their norms are over it"
            return Answer(Outcome.FAILED, f"{text}: it is clipped after the step, or not at all", over)
        return untold(
            f"{text}; but no norm is over it: the loop clips by itself, or there was nothing to clip", "clip_coef"
        )
    if len(late):
        return untold(f"the norm was first seen at the step at {name_rows(run, late)}, and no clipping", "max_norm")
    return NOTHING_CLIPPED


def clip_per_microbatch(run: Run) -> Answer:
    """The gradient was clipped on micro-steps before the last, so that each micro-batch is cut by itself."""
    if not run.recorded("attempted").any():
        return unknown("attempted")
    micro = micro_steps(run)
    clipped = run.recorded("max_norm") | run.recorded("clip_coef")
    early = np.flatnonzero(micro & clipped)
    if len(early):
        cut = run.recorded("clip_coef") & (run.values("clip_coef") < 1)
        text = f"clipped on {plural(len(early), 'micro-step')} before the last of its step, at {name_rows(run, early)}"
        return Answer(Outcome.FAILED, f"{text}; {np.count_nonzero(cut[early]):,} of them were cut", early)
    again = _clipped_again(run)
    if len(again):
        text = f"clipped more than once within {name_rows(run, again)}: micro-batches of one row, or several groups"
        return Answer(Outcome.CANNOT_TELL, text, again, ("micro_step",))
    if not clipped.any():
        return NOTHING_CLIPPED if "max_norm" in run else unknown("max_norm")
    if not micro.any():
        return Answer(Outcome.NOT_APPLICABLE, "no step has more than one row")
    return Answer(
        Outcome.PASSED, f"no clipping on {plural(int(np.count_nonzero(micro)), 'micro-step')} before the last"
    )


def always_clipping(run: Run) -> Answer:
    """Nearly every gradient is cut, over the run or over its second half: max_norm, not the loss, sets the step."""
    known = run.recorded("clip_coef")
    over = (run.kind("grad_norm") == Kind.FINITE) & run.recorded("max_norm")
    if not (known | over).any():
        return NOTHING_CLIPPED if "max_norm" in run else unknown("clip_coef")
    limited = run.values("grad_norm") >= (1 - PINNED) * run.values("max_norm")
    cut = np.where(known, run.values("clip_coef") < 1, limited & over)
    clipped = chosen(cut, known | over)
    count, share, recent = len(clipped), clipped.mean(), clipped[len(clipped) // 2 :].mean()
    text = f"{np.count_nonzero(clipped):,} of {plural(count, 'row')} clipped"
    if max(share, recent) <= ALWAYS:
        return Answer(Outcome.PASSED, text)
    if norm_logged_after_clip(run).outcome is Outcome.FAILED:
        return untold("the norm was read after the clipping: what it was before does not show", "grad_norm")
    rows = np.flatnonzero(known | over)
    rows = rows if share > ALWAYS else rows[len(rows) // 2 :]
    if len(rows) < ENOUGH:
        return too_few(len(rows), "clipped rows", ENOUGH)
    factor = np.minimum(1, run.values("max_norm") / run.values("grad_norm"))
    coefficient = float(np.median(np.where(known, run.values("clip_coef"), factor)[rows]))
    where = "" if share > ALWAYS else f", {100 * recent:.0f} % in the second half"
    return Answer(Outcome.FAILED, f"{text}{where}; median coefficient {number(coefficient)}", rows[cut[rows]])


def _limit(run: Run) -> float | None:
    """The max_norm that the recorder was given."""
    limit = optimizer_settings(run).get("max_norm")
    return float(limit) if isinstance(limit, (int, float)) and np.isfinite(limit) else None


def _clipped_again(run: Run) -> NDArray[np.int64]:
    """The rows on which more was cut than the norm before the first clipping and max_norm account for."""
    unscaled = run.recorded("grad_norm_is_unscaled") & run.values("grad_norm_is_unscaled").astype(np.bool_)
    known = unscaled & (run.kind("grad_norm") == Kind.FINITE) & run.recorded("clip_coef")
    rows = np.flatnonzero(known & (run.values("clip_coef") < 1 - PINNED))
    norm, limit = run.values("grad_norm")[rows], run.values("max_norm")[rows]
    with np.errstate(all="ignore"):
        once = np.minimum(1, limit / (norm + 1e-6))
        return rows[run.values("clip_coef")[rows] < (1 - PINNED) * once]
