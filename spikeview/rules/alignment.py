"""The check for a change in how often an update goes against its own gradient."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spikeview.cells import Kind, chosen
from spikeview.format import plural
from spikeview.rules.finding import Outcome
from spikeview.rules.verdict import Answer, passed, too_few, unknown
from spikeview.rules.wording import row_of
from spikeview.run import Floats, Run

Counts = NDArray[np.int32]

WINDOWS = (128, 256, 512)
SURE = 6.5
DRIFT = 0.25
LEFT = 0.5
PIECE = 16_384


def alignment_shift(run: Run) -> Answer:
    """From one row on updates oppose their gradients much more often, or less, than on the rows before.

    The rate rises by itself as a run converges, and is higher the smaller the batches are: so only a step counts that
    is far larger than what changed over the two windows before it, and of which most is left in the window after.
    """
    told = run.kind("update_cosine") == Kind.FINITE
    opposed = chosen(run.made("alignment.opposed", lambda run: run.values("update_cosine") < 0), told)
    if not len(opposed):
        return unknown("update_cosine")
    if len(opposed) < 4 * WINDOWS[0]:
        return too_few(len(opposed), "cosines", 4 * WINDOWS[0])
    total = np.zeros(len(opposed) + 1, dtype=np.int32)
    np.cumsum(opposed, out=total[1:])
    for window in (each for each in WINDOWS if 4 * each <= len(opposed)):
        # few places have a step that could be one: all else is asked of them alone
        places = _stepped(total, window)
        edges = [total[places + ahead * window] for ahead in range(5)]
        first, before, after, last = ((end - begin) / window for begin, end in pairwise(edges))
        step = after - before
        still = np.abs(before - first) < DRIFT * np.abs(step)
        lasts = (last - before) * np.sign(step) >= LEFT * np.abs(step)
        sure = (np.abs(step) > SURE * _error(before, after, window)) & still & lasts
        if sure.any():
            at = int(np.argmax(np.abs(step) * sure))
            place = np.flatnonzero(told)[places[at] + 2 * window]
            text = f"{100 * before[at]:.1f} % of the {window:,} updates before row {row_of(run, place)} went against "
            text += f"their gradient, {100 * after[at]:.1f} % of those from it on"
            return Answer(Outcome.FAILED, text, np.array([place]))
    rates = (
        f"{100 * opposed.mean():.1f} % of {plural(len(opposed), 'update')} against the gradient, without a step in it"
    )
    return passed(run, rates, "update_cosine", run.kind("update_cosine") == Kind.NOT_RECORDED)


def _stepped(total: Counts, window: int) -> NDArray[np.int64]:
    """Where the second of four windows and the third differ by more than the least error that there can be.

    `total` counts up to each place. A piece at a time stays in the processor's cache.
    """
    least = 0.99 * SURE * float(_error(np.zeros(1), np.zeros(1), window)[0]) * window
    found = []
    for begin in range(0, len(total) - 4 * window, PIECE):
        end = min(begin + PIECE, len(total) - 4 * window)
        before, at, after = (total[begin + ahead * window : end + ahead * window] for ahead in (1, 2, 3))
        found.append(begin + np.flatnonzero(np.abs(after - 2 * at + before) > least))
    return np.concatenate(found)


def _error(one: Floats, other: Floats, window: int) -> Floats:
    """Standard error of the difference of two rates over a window each."""
    mean = np.clip((one + other) / 2, 1 / window, 1 - 1 / window)
    return np.sqrt(2 * mean * (1 - mean) / window)
