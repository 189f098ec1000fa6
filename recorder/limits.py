"""Limits: what the user asked the recorder to end a run for, after everything is written."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

Limit = Callable[[Mapping[str, Any]], Exception | None]


class NonFiniteError(ArithmeticError):
    """The loss or a gradient was not finite, and `on_nonfinite="raise"` was set."""


class SkipRateExceeded(RuntimeError):  # noqa: N818  # says what happened, as StopIteration does
    """Too many attempts did not execute for too long: the run is in a regime that its precision cannot hold."""


def raise_on_nonfinite() -> Limit:
    """Ends the run at the first row with a non-finite loss or gradient."""

    def limit(row: Mapping[str, Any]) -> Exception | None:
        loss, params = row.get("loss"), row.get("grad_nonfinite_params")
        if loss is not None and not isfinite(loss):
            return NonFiniteError(f"row {row['row']}, step {row['step']}, batch {row.get('batch_id')}: loss {loss}")
        if params:
            first = row.get("first_nonfinite_param")
            where = f"row {row['row']}, step {row['step']}, batch {row.get('batch_id')}"
            return NonFiniteError(f"{where}: non-finite gradient in {params} parameters, first {first}")
        return None

    return limit


def skip_rate(most: float, after: int, window: int = 1000) -> Limit:
    """Ends the run where the share of attempts not executed, over `window` attempts, stays over `most` for `after`.

    Declined rows with a non-finite loss or gradient count as skipped attempts. Nothing is judged before the window is
    full, so that the first calibration of a scaler does not count against a run.
    """
    recent: deque[bool] = deque()
    skipped = over = 0

    def limit(row: Mapping[str, Any]) -> Exception | None:
        nonlocal skipped, over
        declined = row.get("skip_reason") in ("nonfinite_loss", "nonfinite_grad")
        if not row.get("attempted") and not declined:
            return None
        recent.append(not row.get("executed"))
        skipped += recent[-1] - (recent.popleft() if len(recent) > window else 0)
        rate = skipped / window
        over = over + 1 if len(recent) == window and rate > most else 0
        if over < after:
            return None
        return SkipRateExceeded(
            f"{rate:.1%} of the last {window:,} attempts did not execute, over the limit of {most:.1%} "
            f"for {after} steps, at row {row['row']}, step {row['step']}"
        )

    return limit
