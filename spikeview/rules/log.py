"""Checks on the record itself: rows twice, rows lost; and on the buffers that it looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.cells import chosen
from spikeview.format import plural
from spikeview.rules.finding import Outcome
from spikeview.rules.verdict import Answer, passed, unknown
from spikeview.rules.wording import name_rows
from spikeview.run import Run

REGULAR = 0.9

Positions = NDArray[np.int64]


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


def duplicate_steps(run: Run) -> Answer:
    """The same step and micro-step twice within a segment, rows aside that the run went back behind."""
    told, kept = run.recorded("step"), ~run.abandoned
    if not told.any():
        return unknown("step")
    if told.all() and kept.all() and _rises(run):
        return Answer(Outcome.PASSED, f"{len(run):,} steps, each once")
    counted = told & run.recorded("micro_step") & kept
    again = _repeated(run, np.flatnonzero(counted), "micro_step")
    if len(again):
        step = int(run.values("step")[again[0]])
        return Answer(Outcome.FAILED, f"step {step} came again; repeated at {name_rows(run, again)}", again)
    if not told.all():
        return passed(run, "no step recorded twice", "step", ~told)
    # a step that comes twice is no repetition where its rows may be micro-steps
    unsure = np.zeros(len(run), dtype=np.bool_)
    unsure[_repeated(run, np.flatnonzero(told & kept))] = not (counted | ~kept).all()
    evidence = "steps come again" if unsure.any() else f"{np.count_nonzero(kept):,} steps, each once"
    return passed(run, evidence, "micro_step", unsure)


def _rises(run: Run) -> bool:
    """Whether every step is larger than the one before it, and no segment comes again."""
    return not run.made("log.falls", _falls, back=1).any()


def _falls(run: Run) -> Mask:
    """[rows]: with a step that is not larger than the one before it, or with an earlier segment."""
    steps, segments = _whole(run, "step"), _whole(run, "segment")
    return np.append(False, (steps[1:] <= steps[:-1]) | (segments[1:] < segments[:-1]))[: len(run)]


def _goes_on(run: Run) -> Mask:
    """[rows]: with the number after that of the row before, and the step after that one's within the segment."""
    rows, steps, segments = (_whole(run, name) for name in ("row", "step", "segment"))
    follows = (np.diff(rows) == 1) & (np.diff(steps) == 1) & (np.diff(segments) == 0)
    told = run.recorded("row") & run.recorded("step")
    return np.append(True, follows)[: len(run)] & told


def _repeated(run: Run, rows: Positions, *finer: str) -> Positions:
    """Those of the rows whose segment and step, and the `finer` columns, another one before had."""
    keys = [_whole(run, name)[rows] for name in (*finer, "step", "segment")]
    if (np.diff(keys[-2]) > 0).all() and (np.diff(keys[-1]) >= 0).all():
        return rows[:0]
    order = np.lexsort(keys)
    same = np.logical_and.reduce([np.diff(key[order]) == 0 for key in keys])
    return np.sort(rows[order[1:][same]])


def gap_in_log(run: Run) -> Answer:
    """Row numbers that are missing, or steps that are where steps otherwise come at a regular stride."""
    numbered, stepped = run.recorded("row"), run.recorded("step")
    if not (numbered.any() or stepped.any()):
        return unknown("row", "step")
    if run.made("log.goes_on", _goes_on, back=1).all():
        return Answer(Outcome.PASSED, "rows and steps are complete")
    jumps = np.diff(_whole(run, "row"))
    lost = np.flatnonzero((jumps > 1) & numbered[1:] & numbered[:-1]) + 1
    if len(lost):
        count = int(np.sum(jumps[lost - 1] - 1))
        return Answer(Outcome.FAILED, f"{count:,} rows missing before {name_rows(run, lost)}", lost)
    if not stepped.any():
        return passed(run, "row numbers are complete", "row", ~numbered)
    strides = np.diff(_whole(run, "step"))
    within = (strides > 0) & (np.diff(_whole(run, "segment")) == 0) & stepped[1:] & stepped[:-1]
    usual = _middle(chosen(strides, within))
    wide = np.flatnonzero(within & (strides > usual)) + 1
    if len(wide) and np.mean(chosen(strides, within) == usual) >= REGULAR:
        return Answer(Outcome.FAILED, f"steps come every {usual}, but not before {name_rows(run, wide)}", wide)
    evidence = "rows and steps are complete" if not len(wide) else "steps come at no regular stride"
    return passed(run, evidence, "step", ~stepped & ~numbered)


def _middle(strides: Positions) -> int:
    """The median, 0 of none; as a rule they are all alike."""
    if not len(strides):
        return 0
    return int(strides[0]) if (strides == strides[0]).all() else int(np.median(strides))


def _whole(run: Run, name: str) -> Positions:
    """A column of whole numbers, 0 where it was not recorded."""
    return run.values(name).astype(np.int64, copy=False) if name in run else np.zeros(len(run), dtype=np.int64)
