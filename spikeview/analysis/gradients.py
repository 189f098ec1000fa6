"""What is known of whether the gradients of a row are finite."""

from __future__ import annotations

import numpy as np

from recorder.schema import Mask
from spikeview.cells import Kind
from spikeview.run import Run, row_by_row


@row_by_row
def nonfinite_gradient(run: Run) -> Mask:
    """[rows]: a gradient is known to hold a NaN or Inf: by the count where it was recorded.

    Without a count a norm of NaN says so, and a step that the scaler or the loop left out for it; a norm of Inf does
    not, since a norm can overflow though every gradient is finite.
    """
    told = run.kind("grad_norm") == Kind.NAN
    told = told | run.equals("skip_reason", "amp_overflow") | run.equals("skip_reason", "nonfinite_grad")
    counted: Mask = run.recorded("grad_nonfinite_params")
    broken: Mask = np.where(counted, run.values("grad_nonfinite_params") > 0, told)
    return broken


@row_by_row
def unknown_gradient(run: Run) -> Mask:
    """[rows]: a gradient of which it is not known whether it is finite."""
    norm = run.kind("grad_norm")
    silent = (norm == Kind.NOT_RECORDED) | (norm == Kind.POS_INF) | (norm == Kind.NEG_INF)
    unknown: Mask = silent & (run.kind("grad_nonfinite_params") == Kind.NOT_RECORDED) & ~nonfinite_gradient(run)
    return unknown


@row_by_row
def overflowed_norm(run: Run) -> Mask:
    """[rows]: a norm of Inf over gradients that are all finite: the largest that there can be."""
    finite = run.recorded("grad_nonfinite_params") & (run.values("grad_nonfinite_params") == 0)
    overflowed: Mask = finite & (run.kind("grad_norm") == Kind.POS_INF)
    return overflowed
