"""Triggers: what makes the recorder say, while the run goes on, that a row is worth a look."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import exp, inf, isfinite, log
from typing import Any

Row = Mapping[str, Any]

_WINDOW = 64
_LEAST = 16
_REFRESH = 8
_LEAST_RISE = 0.5
_TIMES = 5.0


@dataclass(frozen=True)
class Trigger:
    """A name and a predicate over a finished row's columns: the reason where it trips, None where it does not.

    The predicate is called once a row, in order. A row that trips right after one that did belongs to the same
    occasion and is not told again. `columns` are those that it looks at, as far as they are known: a recorder refuses
    one that no row will ever hold.
    """

    name: str
    reason: Callable[[Row], str | None]
    columns: tuple[str, ...] = ()


def below(column: str, threshold: float) -> Trigger:
    """Trips where a column is under a threshold."""

    def reason(row: Row) -> str | None:
        value = row.get(column)
        return f"{column} {value:.4g} < {threshold:g}" if value is not None and value < threshold else None

    return Trigger(f"{column}_below", reason, (column,))


def above(column: str, threshold: float) -> Trigger:
    """Trips where a column is over a threshold."""

    def reason(row: Row) -> str | None:
        value = row.get(column)
        return f"{column} {value:.4g} > {threshold:g}" if value is not None and value > threshold else None

    return Trigger(f"{column}_above", reason, (column,))


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

    Or where it is five times the largest of them, since the MADs of a falling level are large. It only decides what is
    kept in detail while the run goes on, so it is coarser than the diagnosis of the desk: a row is looked at closely
    where it is over a bar, which follows the median every few rows.
    """
    recent: deque[float] = deque(maxlen=_WINDOW)
    bar, age = inf, 0

    def reason(row: Row) -> str | None:
        nonlocal bar, age
        value = row.get(column)
        if value is None or not 0 < value < inf:
            return None
        if value > bar:
            distance, times = _distance(value, recent), value / max(recent)
            if distance > mads or times > _TIMES:
                much = f"{distance:.0f} MADs over" if distance > mads else f"{times:.0f} times the largest of"
                return f"{column} {value:.4g} is {much} the last {len(recent)} rows"
        recent.append(value)
        age += 1
        if age >= _REFRESH and len(recent) >= _LEAST:
            bar, age = sorted(recent)[len(recent) // 2] * exp(_LEAST_RISE), 0
        return None

    return Trigger(f"{column}_departs", reason, (column,))


def _distance(value: float, recent: Iterable[float]) -> float:
    """How many MADs the logarithm of a value is over the median of these; 0 where it is hardly over it."""
    levels = sorted(map(log, recent))
    middle = levels[len(levels) // 2]
    rise = log(value) - middle
    spread = sorted(abs(level - middle) for level in levels)[len(levels) // 2]
    return rise / max(1.4826 * spread, 0.05) if rise > _LEAST_RISE else 0.0


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
