"""Checks on the record itself: values that say something else than they seem to, rows twice, rows lost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spikeview.analysis.observations import nonfinite_gradient, unknown_gradient
from spikeview.analysis.signals import nonfinite
from spikeview.format import number, plural
from spikeview.rules.finding import Outcome
from spikeview.rules.verdict import Answer, passed, unknown
from spikeview.rules.wording import name_rows
from spikeview.run import Kind, Run

PINNED = 1e-3
PINNED_ROWS = 10
PINNED_SHARE = 0.05
REGULAR = 0.9

Positions = NDArray[np.int64]


def norm_logged_after_clip(run: Run) -> Answer:
    """The norm never passes max_norm and often lies on it: it was read after clipping.

    One norm over max_norm shows that it was read before, whatever else was not recorded.
    """
    clipped = run.recorded("max_norm") | (run.recorded("clip_coef") & (run.values("clip_coef") < 1))
    if not clipped.any():
        return Answer(Outcome.NOT_APPLICABLE, "nothing was clipped") if "max_norm" in run else unknown("max_norm")
    limited = (run.kind("grad_norm") == Kind.FINITE) & run.recorded("max_norm") & (run.values("max_norm") > 0)
    lacks = "max_norm" if run.recorded("grad_norm")[clipped].all() else "grad_norm"
    if not limited.any():
        return unknown(lacks)
    ratio = run.values("grad_norm")[limited] / run.values("max_norm")[limited]
    pinned = np.flatnonzero(limited)[np.abs(ratio - 1) <= PINNED]
    largest = f"largest norm {number(ratio.max())} times max_norm"
    if ratio.max() > 1 + PINNED:
        return Answer(Outcome.PASSED, largest)
    if len(pinned) >= max(PINNED_ROWS, PINNED_SHARE * len(ratio)):
        text = f"the norm equals max_norm at {name_rows(run, pinned)} and never passes it"
        return Answer(Outcome.FAILED, text, pinned)
    untold = (run.kind("grad_norm") == Kind.NOT_RECORDED) | ~run.recorded("max_norm")
    return passed(run, largest, lacks, clipped & untold)


def nonfinite_buffers(run: Run) -> Answer:
    """A buffer of the model, such as a running mean, holds a NaN or an Inf, which no skipped step takes back."""
    seen = np.flatnonzero(run.recorded("nonfinite_buffers"))
    if not len(seen):
        return unknown("nonfinite_buffers")
    counts = run.values("nonfinite_buffers")[seen]
    bad = seen[counts > 0]
    if not len(bad):
        return Answer(Outcome.PASSED, f"finite on the {plural(len(seen), 'row')} that looked at them")
    ending = "and to the end" if counts[-1] > 0 else "and finite again at the end"
    text = f"{plural(int(counts.max()), 'buffer')} not finite from {name_rows(run, bad[:1])} on {ending}: the model in "
    return Answer(Outcome.FAILED, f"{text}evaluation mode is lost; go back to a checkpoint before", bad)


def masked_nan_loss(run: Run) -> Answer:
    """A loss of exactly 0 beside a non-finite gradient: a logger that writes NaN as 0."""
    if not run.recorded("loss").any():
        return unknown("loss")
    if not (run.recorded("grad_norm") | run.recorded("grad_nonfinite_params")).any():
        return unknown("grad_norm")
    bad = nonfinite_gradient(run) | nonfinite(run, "grad_norm")
    zero = run.recorded("loss") & (run.values("loss") == 0)
    masked = np.flatnonzero(zero & bad)
    if len(masked):
        text = f"loss exactly 0 with a non-finite gradient or norm at {name_rows(run, masked)}"
        return Answer(Outcome.FAILED, text, masked)
    evidence = "no loss of 0 beside a non-finite gradient"
    lost = bad & ~run.recorded("loss")
    return passed(run, evidence, *(("loss", lost) if lost.any() else ("grad_norm", zero & unknown_gradient(run))))


def duplicate_steps(run: Run) -> Answer:
    """The same step and micro-step twice within a segment."""
    told = run.recorded("step")
    if not told.any():
        return unknown("step")
    counted = told & run.recorded("micro_step")
    again = _repeated(run, np.flatnonzero(counted), "micro_step")
    if len(again):
        step = int(run.values("step")[again[0]])
        return Answer(Outcome.FAILED, f"step {step} came again; repeated at {name_rows(run, again)}", again)
    if not told.all():
        return passed(run, "no step recorded twice", "step", ~told)
    # a step that comes twice is no repetition where its rows may be micro-steps
    unsure = np.zeros(len(run), dtype=np.bool_)
    unsure[_repeated(run, np.flatnonzero(told))] = not counted.all()
    evidence = "steps come again" if unsure.any() else f"{len(run):,} steps, each once"
    return passed(run, evidence, "micro_step", unsure)


def _repeated(run: Run, rows: Positions, *finer: str) -> Positions:
    """Those of the rows whose segment and step, and the `finer` columns, another one before had."""
    keys = [_whole(run, name)[rows] for name in (*finer, "step", "segment")]
    order = np.lexsort(keys)
    same = np.logical_and.reduce([np.diff(key[order]) == 0 for key in keys])
    return np.sort(rows[order[1:][same]])


def gap_in_log(run: Run) -> Answer:
    """Row numbers that are missing, or steps that are where steps otherwise come at a regular stride."""
    numbered, stepped = run.recorded("row"), run.recorded("step")
    if not (numbered.any() or stepped.any()):
        return unknown("row", "step")
    jumps = np.diff(_whole(run, "row")) * (numbered[1:] & numbered[:-1])
    lost = np.flatnonzero(jumps > 1) + 1
    if len(lost):
        count = int(np.sum(jumps[lost - 1] - 1))
        return Answer(Outcome.FAILED, f"{count:,} rows missing before {name_rows(run, lost)}", lost)
    if not stepped.any():
        return passed(run, "row numbers are complete", "row", ~numbered)
    strides = np.diff(_whole(run, "step"))
    within = (strides > 0) & (np.diff(_whole(run, "segment")) == 0) & stepped[1:] & stepped[:-1]
    usual = int(np.median(strides[within])) if within.any() else 0
    wide = np.flatnonzero(within & (strides > usual)) + 1
    if len(wide) and np.mean(strides[within] == usual) >= REGULAR:
        return Answer(Outcome.FAILED, f"steps come every {usual}, but not before {name_rows(run, wide)}", wide)
    evidence = "rows and steps are complete" if not len(wide) else "steps come at no regular stride"
    return passed(run, evidence, "step", ~stepped & ~numbered)


def _whole(run: Run, name: str) -> Positions:
    """A column of whole numbers, 0 where it was not recorded."""
    return run.values(name).astype(np.int64) if name in run else np.zeros(len(run), dtype=np.int64)
