"""Rows where a step was attempted and did not execute."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.meaning import is_log
from spikeview.run import Run, row_by_row

Counts = NDArray[np.int64]


def skipped(run: Run) -> Mask:
    """[rows]: attempted, and known not to have executed; of a log's rows, in part or all."""
    return _refused(run) if _counted(run, "executed_n") is None else skips(run) > 0


def skips(run: Run) -> Counts:
    """[rows]: how many attempts are known not to have executed. A log's row may stand for several, and counts them."""
    own = _refused(run).astype(np.int64)
    return own if (counted := _counted(run, "executed_n")) is None else np.maximum(own, attempts(run) - counted)


@row_by_row
def _refused(run: Run) -> Mask:
    attempted: Mask = run.values("attempted")
    executed: Mask = run.values("executed")
    return attempted & run.recorded("executed") & ~executed


def attempts(run: Run) -> Counts:
    """[rows]: how many attempts a row stands for."""
    counted = _counted(run, "attempted_n")
    return run.values("attempted").astype(np.int64) if counted is None else counted


def executed_steps(run: Run) -> int:
    """How many steps executed, as far as that is known. A log's row may stand for several."""
    counted = _counted(run, "executed_n")
    return int(np.count_nonzero(run.values("executed")) if counted is None else counted.sum())


def _counted(run: Run, column: str) -> Counts | None:
    """By how much a counter rose in each row of a log; None where every row is one attempt."""
    if not is_log(run) or not run.recorded(column).all():
        return None
    return np.diff(run.values(column), prepend=0)


@row_by_row
def perhaps_executed(run: Run) -> Mask:
    """[rows]: of which it is not known whether a step executed. Where none was attempted, none did."""
    idle = run.recorded("attempted") & ~run.values("attempted").astype(np.bool_)
    return ~run.recorded("executed") & ~idle


@row_by_row
def declined(run: Run) -> Mask:
    """[rows]: the loop did not attempt a step because of what the loss or the gradient held."""
    return run.equals("skip_reason", "nonfinite_loss") | run.equals("skip_reason", "nonfinite_grad")


def skipped_or_declined(run: Run) -> Mask:
    """[rows]: a step was due and did not execute. Accumulating and gated rows are not among them."""
    return skipped(run) | declined(run)
