"""Checks on the record itself: values that say something else than they seem to, rows twice, rows lost."""

from __future__ import annotations

import numpy as np

from spikeview.analysis.observations import nonfinite_gradient
from spikeview.analysis.signals import nonfinite
from spikeview.format import number
from spikeview.rules.finding import Outcome
from spikeview.rules.verdict import Answer, unknown
from spikeview.rules.wording import name_rows
from spikeview.run import Kind, Run

PINNED = 1e-3
PINNED_ROWS = 10
PINNED_SHARE = 0.05
REGULAR = 0.9


def norm_logged_after_clip(run: Run) -> Answer:
    """The norm never passes max_norm and often lies on it: it was read after clipping."""
    if not run.recorded("grad_norm").any():
        return unknown("grad_norm")
    limited = (run.kind("grad_norm") == Kind.FINITE) & run.recorded("max_norm")
    if not limited.any():
        return Answer(Outcome.NOT_APPLICABLE, "nothing was clipped") if "max_norm" in run else unknown("max_norm")
    ratio = run.values("grad_norm")[limited] / run.values("max_norm")[limited]
    pinned = np.flatnonzero(limited)[np.abs(ratio - 1) <= PINNED]
    largest = f"largest norm {number(ratio.max())} times max_norm"
    if ratio.max() <= 1 + PINNED and len(pinned) >= max(PINNED_ROWS, PINNED_SHARE * len(ratio)):
        return Answer(
            Outcome.FAILED, f"the norm equals max_norm at {name_rows(run, pinned)} and never passes it", pinned
        )
    return Answer(Outcome.PASSED, largest)


def masked_nan_loss(run: Run) -> Answer:
    """A loss of exactly 0 beside a non-finite gradient: a logger that writes NaN as 0."""
    if not run.recorded("loss").any():
        return unknown("loss")
    if not (run.recorded("grad_norm") | run.recorded("grad_nonfinite_params")).any():
        return unknown("grad_norm")
    bad = nonfinite_gradient(run) | nonfinite(run, "grad_norm")
    masked = np.flatnonzero(run.recorded("loss") & (run.values("loss") == 0) & bad)
    if len(masked):
        return Answer(Outcome.FAILED, f"loss exactly 0 with a non-finite gradient at {name_rows(run, masked)}", masked)
    return Answer(Outcome.PASSED, "no loss of 0 beside a non-finite gradient")


def duplicate_steps(run: Run) -> Answer:
    """The same step and micro-step twice within a segment."""
    if not run.recorded("step").any():
        return unknown("step")
    keys = [run.values("micro_step"), run.values("step"), _segments(run)]
    order = np.lexsort(keys)
    same = np.logical_and.reduce([np.diff(key[order]) == 0 for key in keys])
    again = np.sort(order[1:][same])
    if len(again):
        step = int(run.values("step")[again[0]])
        return Answer(Outcome.FAILED, f"step {step} came again; repeated at {name_rows(run, again)}", again)
    return Answer(Outcome.PASSED, f"{len(run):,} steps, each once")


def gap_in_log(run: Run) -> Answer:
    """Row numbers that are missing, or steps that are where steps otherwise come at a regular stride."""
    if "row" in run:
        lost = np.flatnonzero(np.diff(run.values("row")) > 1) + 1
        if len(lost):
            count = int(np.sum(np.diff(run.values("row"))[lost - 1] - 1))
            return Answer(Outcome.FAILED, f"{count:,} rows missing before {name_rows(run, lost)}", lost)
    if not run.recorded("step").any():
        return Answer(Outcome.PASSED, "row numbers are complete") if "row" in run else unknown("row", "step")
    strides = np.diff(run.values("step"))
    within = (strides > 0) & (np.diff(_segments(run)) == 0)
    if not within.any():
        return Answer(Outcome.PASSED, "row numbers are complete")
    usual = int(np.median(strides[within]))
    wide = np.flatnonzero(within & (strides > usual)) + 1
    if len(wide) and np.mean(strides[within] == usual) >= REGULAR:
        return Answer(Outcome.FAILED, f"steps come every {usual}, but not before {name_rows(run, wide)}", wide)
    return Answer(Outcome.PASSED, "rows and steps are complete" if not len(wide) else "steps come at no regular stride")


def _segments(run: Run) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return run.values("segment").astype(np.int64) if "segment" in run else np.zeros(len(run), dtype=np.int64)
