"""Norms that end at a limit, and the check for those that were read after clipping to it."""

from __future__ import annotations

import numpy as np

from recorder.schema import Mask
from spikeview.cells import Kind, chosen
from spikeview.format import number, plural
from spikeview.meaning import BEFORE, meaning
from spikeview.rules.finding import Outcome
from spikeview.rules.verdict import Answer, passed, unknown, untold
from spikeview.rules.wording import name_rows
from spikeview.run import Floats, Run

PINNED = 1e-3
PINNED_ROWS = 10
PINNED_SHARE = 0.05
ALWAYS = 0.95

NOTHING_CLIPPED = Answer(Outcome.NOT_APPLICABLE, "nothing was clipped")


def is_pinned(count: int, rows: int) -> bool:
    """Whether so many of the rows on one value are too many for chance."""
    return count >= max(PINNED_ROWS, PINNED_SHARE * rows)


def ends_at(norms: Floats) -> Mask:
    """[norms]: those that are the largest one, to rounding."""
    largest: Mask = norms >= (1 - PINNED) * norms.max(initial=0)
    return largest


def norm_logged_after_clip(run: Run) -> Answer:
    """The norm never passes max_norm and often lies on it: it was read after clipping.

    One norm over max_norm shows that it was read before, whatever else was not recorded. Where no limit was recorded, a
    largest norm that many rows share shows that there was one.
    """
    clipped = run.recorded("max_norm") | (run.recorded("clip_coef") & (run.values("clip_coef") < 1))
    if not clipped.any():
        said = meaning(run, "grad_norm")
        if said is not None and said.clipping == BEFORE:
            return Answer(Outcome.PASSED, "this log writes the norm from before the clipping")
        return _shared_limit(run) or (NOTHING_CLIPPED if "max_norm" in run else unknown("max_norm"))
    limited = (run.kind("grad_norm") == Kind.FINITE) & run.recorded("max_norm") & (run.values("max_norm") > 0)
    lacks = "max_norm" if run.recorded("grad_norm")[clipped].all() else "grad_norm"
    if not limited.any():
        return unknown(lacks)
    ratio = chosen(run.values("grad_norm"), limited) / chosen(run.values("max_norm"), limited)
    largest = f"largest norm {number(ratio.max())} times max_norm"
    if ratio.max() > 1 + PINNED:
        return Answer(Outcome.PASSED, largest)
    pinned = np.flatnonzero(limited)[np.abs(ratio - 1) <= PINNED]
    if is_pinned(len(pinned), len(ratio)):
        text = f"the norm equals max_norm at {name_rows(run, pinned)} and never passes it"
        return Answer(Outcome.FAILED, text, pinned)
    silent = (run.kind("grad_norm") == Kind.NOT_RECORDED) | ~run.recorded("max_norm")
    return passed(run, largest, lacks, clipped & silent)


def _shared_limit(run: Run) -> Answer | None:
    """The answer where many of the norms, though not all, are the largest one: a limit that nobody recorded."""
    rows = np.flatnonzero(run.kind("grad_norm") == Kind.FINITE)
    norms = run.values("grad_norm")[rows]
    at_limit = ends_at(norms)
    pinned, others = rows[at_limit], norms[~at_limit]
    rounded = 2 * len(np.unique(others)) < len(others)  # then many rows share every value
    stuck = np.count_nonzero(np.diff(at_limit)) < PINNED_ROWS and len(others) > 0  # one stretch is no limit that clips
    if rounded or stuck or not is_pinned(len(pinned), len(rows)):
        return None
    text = f"the norm ends at {number(norms.max())} on {plural(len(pinned), 'row')}, {name_rows(run, pinned)}"
    if len(pinned) > ALWAYS * len(rows):
        return untold(f"{text}: a limit, or a gradient that is always as large", "max_norm")
    return Answer(Outcome.FAILED, f"{text}: it was read after a clipping to that", pinned)
