"""Triggers: what makes the recorder say, while the run goes on, that a row is worth a look."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Trigger:
    """A name and a predicate over a finished row's columns: the reason where it trips, None where it does not."""

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


def _nonfinite(row: Row) -> str | None:
    loss = row.get("loss")
    if loss is not None and not isfinite(loss):
        return f"loss {loss}"
    if row.get("grad_nonfinite_params"):
        return f"non-finite gradient in {row['grad_nonfinite_params']} parameters, first {row['first_nonfinite_param']}"
    return None


NONFINITE = Trigger("nonfinite", _nonfinite)
DEFAULT = (NONFINITE,)
