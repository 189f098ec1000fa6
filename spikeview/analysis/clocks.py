"""Rows where a step was attempted and did not execute, and those of them that are only calibration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.run import Run

# From a scale of 2**24 a scaler finds its level within ten skips.
CALIBRATING = 32


def skipped(run: Run) -> Mask:
    """[rows]: attempted, and known not to have executed."""
    attempted: Mask = run.values("attempted")
    executed: Mask = run.values("executed")
    return attempted & run.recorded("executed") & ~executed


def declined(run: Run) -> Mask:
    """[rows]: the loop did not attempt a step because of what the loss or the gradient held."""
    return run.equals("skip_reason", "nonfinite_loss") | run.equals("skip_reason", "nonfinite_grad")


def skipped_or_declined(run: Run) -> Mask:
    """[rows]: a step was due and did not execute. Accumulating and gated rows are not among them."""
    return skipped(run) | declined(run)


def calibrating(run: Run) -> Mask:
    """[rows]: skips by which a scaler finds its level.

    The first skips of a segment, before anything executed in it, and one skip right after the scale grew.
    """
    skips = skipped(run)
    if not skips.any():
        return skips
    unsettled = (_within_segment(run, run.values("executed")) == 0) & (_within_segment(run, skips) <= CALIBRATING)
    found: Mask = skips & (unsettled | _grown(run))
    return found


def _within_segment(run: Run, mask: Mask) -> NDArray[np.int64]:
    """How many rows of the mask its segment has held up to each row, that row included."""
    counts: NDArray[np.int64] = np.cumsum(mask)
    if "segment" not in run or not len(run):
        return counts
    starts = np.flatnonzero(np.diff(run.values("segment"), prepend=run.values("segment")[0] - 1))
    before: NDArray[np.int64] = counts[starts] - mask[starts]
    return counts - np.repeat(before, np.diff(np.append(starts, len(run))))


def _grown(run: Run) -> Mask:
    """Attempted rows whose scale is larger than that of the attempt before."""
    grown = np.zeros(len(run), dtype=np.bool_)
    attempts = np.flatnonzero(run.values("attempted") & run.recorded("loss_scale"))
    grown[attempts[1:]] = np.diff(run.values("loss_scale")[attempts]) > 0
    return grown
