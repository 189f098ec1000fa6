"""Rows where a step was attempted and did not execute, and those of them that are only calibration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.run import Run

# The largest scale in use, 2**24, is 1 after as many halvings: below that the gradients themselves are too large.
CALIBRATING = 24


def skipped(run: Run) -> Mask:
    """[rows]: attempted, and known not to have executed."""
    attempted: Mask = run.values("attempted")
    executed: Mask = run.values("executed")
    return attempted & run.recorded("executed") & ~executed


def perhaps_executed(run: Run) -> Mask:
    """[rows]: of which it is not known whether a step executed. Where none was attempted, none did."""
    idle = run.recorded("attempted") & ~run.values("attempted").astype(np.bool_)
    return ~run.recorded("executed") & ~idle


def declined(run: Run) -> Mask:
    """[rows]: the loop did not attempt a step because of what the loss or the gradient held."""
    return run.equals("skip_reason", "nonfinite_loss") | run.equals("skip_reason", "nonfinite_grad")


def skipped_or_declined(run: Run) -> Mask:
    """[rows]: a step was due and did not execute. Accumulating and gated rows are not among them."""
    return skipped(run) | declined(run)


def calibrating(run: Run) -> Mask:
    """[rows]: skips by which a scaler finds its level.

    The first skips of a segment, before the first step that executes in it, and one skip right after the scale grew.
    Where nothing executes in the segment no level was found, and none of its skips is calibration.
    """
    skips = skipped(run)
    if not skips.any():
        return skips
    segment = _segments(run)
    executed = run.values("executed").astype(np.bool_)
    settles = np.bincount(segment, weights=executed | perhaps_executed(run)) > 0
    first = (_so_far(executed, segment) == 0) & (_so_far(skips, segment) <= CALIBRATING)
    found: Mask = skips & (first & settles[segment] | _grown(run))
    return found


def _segments(run: Run) -> NDArray[np.int64]:
    """[rows]: the segment of each row, counted from 0."""
    if "segment" not in run or not len(run):
        return np.zeros(len(run), dtype=np.int64)
    counted: NDArray[np.int64] = np.cumsum(np.diff(run.values("segment"), prepend=run.values("segment")[0]) != 0)
    return counted


def _so_far(mask: Mask, segment: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many rows of the mask its segment has held up to each row, that row included."""
    counts: NDArray[np.int64] = np.cumsum(mask)
    starts = np.flatnonzero(np.diff(segment, prepend=-1))
    return counts - (counts[starts] - mask[starts])[segment]


def _grown(run: Run) -> Mask:
    """Attempted rows whose scale is larger than that of the attempt before."""
    grown = np.zeros(len(run), dtype=np.bool_)
    attempts = np.flatnonzero(run.values("attempted") & run.recorded("loss_scale"))
    grown[attempts[1:]] = np.diff(run.values("loss_scale")[attempts]) > 0
    return grown
