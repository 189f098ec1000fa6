"""The check for gradients that are not cleared: each row's then holds those of all rows before."""

from __future__ import annotations

from functools import cache

import numpy as np

from spikeview.cells import Kind, chosen
from spikeview.format import number
from spikeview.meaning import is_log, usual_stride
from spikeview.rules.finding import Outcome
from spikeview.rules.steps import idle
from spikeview.rules.verdict import Answer, passed, too_few, unknown, untold
from spikeview.rules.wording import name_rows
from spikeview.run import Floats, Run

BUILD_UP = 16
AT_START = 8
SLACK = 0.75
DIRECT = 0.7
SUM = (0.35, 0.8)
KEPT = 2.0
LONG = 64
HALF = 0.5
DROPS = 0.7


def gradients_not_cleared(run: Run) -> Answer:
    """The norm builds up as a sum does: by about its own size at first, in one direction, and without coming back.

    A sum over j gradients is between the root of j and j times one of them. What explodes grows by factors instead, and
    a gradient of its own on every row moves up and down. Where clipping cuts what is left of each row, a sum cannot
    build up: there only norms that fall far below what was left show that they were cleared.
    """
    told = (run.kind("grad_norm") == Kind.FINITE) & (run.values("grad_norm") > 0) & ~idle(run)
    rows = np.flatnonzero(told)
    if not len(rows):
        return unknown("grad_norm")
    if is_log(run) and usual_stride(run) > 1:
        return untold("the log leaves steps out: what builds up from one to the next does not show", "grad_norm")
    if len(rows) <= BUILD_UP:
        return too_few(len(rows), "norms", BUILD_UP + 1)
    norms = chosen(run.values("grad_norm"), told)
    found = _build_up(np.log(norms))
    if found is not None:
        first, last = rows[found[0]], rows[found[1]]
        text = f"the norm built up from {number(norms[found[0]])} at {name_rows(run, [first])} to "
        text += (
            f"{number(norms[found[1]])} at {name_rows(run, [last])} as a sum of gradients does, and did not come back"
        )
        return Answer(Outcome.FAILED, text, rows[found[0] : found[1] + 1])
    factors = np.where(run.recorded("clip_coef"), run.values("clip_coef"), 1.0)
    hidden = _hidden(norms, chosen(factors, told))
    if hidden is not None:
        text = f"most rows were clipped from {name_rows(run, [rows[hidden]])} on, which hides what would build up"
        return untold(text)
    return passed(run, "no norm that builds up over the rows", "grad_norm", run.kind("grad_norm") == Kind.NOT_RECORDED)


def _build_up(logs: Floats) -> tuple[int, int] | None:
    """From where to where a norm, given by its logarithms, builds up as a sum; None where it never does.

    Over j more rows a sum grows by the root of j + 1 at least, SLACK aside, and by j + 1 at most, and what grew
    before grows by itself.
    At the start, where there is nothing before to vary by chance, fewer rows will do.
    """
    way = cache(lambda: np.concatenate([[0.0], np.cumsum(np.abs(np.diff(logs)))]))
    for length, last in ((AT_START, 1), (BUILD_UP, len(logs))):
        rise = (logs[length:] - logs[:-length])[:last]
        grown = np.flatnonzero((rise >= np.log(SLACK * (length + 1) ** 0.5)) & (rise <= np.log((length + 1) / SLACK)))
        if not len(grown):
            continue
        rise, begin = rise[grown], logs[grown + length // 4] - logs[grown]
        grew = logs[grown] - logs[np.maximum(grown - 2 * length, 0)] > HALF * rise
        direct = rise >= DIRECT * (way()[grown + length] - way()[grown])
        as_sum = (begin >= SUM[0] * rise) & (begin <= np.minimum(SUM[1] * rise, np.log((length // 4 + 1) / SLACK)))
        for onset in grown[direct & as_sum & ~grew].tolist():
            if np.median(logs[onset + length : onset + LONG]) >= logs[onset] + np.log(KEPT):
                return onset, onset + length
    return None


def _hidden(norms: Floats, factors: Floats) -> int | None:
    """Where a stretch begins that was mostly clipped, and none of whose norms fell far below what the one before left.

    It is LONG rows, or a sixteenth of all: who forgets to clear gradients forgets it for long.
    """
    if not (factors < 1).any():
        return None
    left = norms * factors
    fell = np.concatenate([[False], norms[1:] < DROPS * left[:-1]])
    width = min(max(LONG, len(norms) // 16), len(norms))
    cut, falls = (np.concatenate([[0], np.cumsum(mask)]) for mask in (factors < 1, fell))
    hidden = (cut[width:] - cut[:-width] > HALF * width) & (falls[width:] == falls[:-width])
    return int(np.argmax(hidden)) if hidden.any() else None
