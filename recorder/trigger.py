"""Triggers: what makes the recorder say, while the run goes on, that a row is worth a look."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite, log
from typing import Any

Row = Mapping[str, Any]

_WINDOW = 64
_LEAST = 16


@dataclass(frozen=True)
class Trigger:
    """A name and a predicate over a finished row's columns: the reason where it trips, None where it does not.

    The predicate is called once a row, in order. A row that trips right after one that did belongs to the same
    occasion and is not told again.
    """

    name: str
    reason: Callable[[Row], str | None]


def below(column: str, threshold: float) -> Trigger:
    """Trips where a column is under a threshold."""

    def reason(row: Row) -> str | None:
        value = row.get(column)
        return f"{column} {value:.4g} < {threshold:g}" if value is not None and value < threshold else None

    return Trigger(f"{column}_below", reason)


def above(column: str, threshold: float) -> Trigger:
    """Trips where a column is over a threshold."""

    def reason(row: Row) -> str | None:
        value = row.get(column)
        return f"{column} {value:.4g} > {threshold:g}" if value is not None and value > threshold else None

    return Trigger(f"{column}_above", reason)


def nonfinite() -> Trigger:
    """Trips where the loss or a gradient is not finite."""

    def reason(row: Row) -> str | None:
        loss = row.get("loss")
        if loss is not None and not isfinite(loss):
            return f"loss {loss}"
        count = row.get("grad_nonfinite_params")
        if count:
            return f"non-finite gradient in {count} parameters, first {row.get('first_nonfinite_param')}"
        return None

    return Trigger("nonfinite", reason)


def departs(column: str, mads: float = 12.0) -> Trigger:
    """Trips where the logarithm of a positive column is this many MADs over its median of the last 64 rows.

    It only decides what is kept in detail while the run goes on, so it is coarser than the diagnosis of the desk.
    """
    recent: deque[float] = deque()
    ordered: list[float] = []

    def reason(row: Row) -> str | None:
        value = row.get(column)
        if value is None or not isfinite(value) or value <= 0:
            return None
        level = log(value)
        tripped = None
        if len(ordered) >= _LEAST:
            middle = ordered[len(ordered) // 2]
            spread = sorted(abs(x - middle) for x in ordered)[len(ordered) // 2] if level > middle + 0.5 else 0.0
            distance = (level - middle) / max(1.4826 * spread, 0.05)
            if level > middle + 0.5 and distance > mads:
                tripped = f"{column} {value:.4g} is {distance:.0f} MADs over the last {len(ordered)} rows"
        if tripped is None:
            recent.append(level)
            insort(ordered, level)
            if len(recent) > _WINDOW:
                ordered.pop(bisect_left(ordered, recent.popleft()))
        return tripped

    return Trigger(f"{column}_departs", reason)


def skip_streak(length: int = 10) -> Trigger:
    """Trips where this many attempts in a row did not execute."""
    streak = 0

    def reason(row: Row) -> str | None:
        nonlocal streak
        if row.get("attempted"):
            streak = 0 if row.get("executed") else streak + 1
        return f"{streak} attempts in a row did not execute" if streak >= length else None

    return Trigger("skip_streak", reason)


def default() -> tuple[Trigger, ...]:
    """Triggers with a state of their own, for one recorder."""
    return (nonfinite(), departs("loss"), departs("grad_norm"), skip_streak())
