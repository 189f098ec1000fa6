"""What a recorder is given, checked before anything is written: each refusal says what to pass instead."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from math import isnan
from typing import Any

import torch
from torch.optim import Optimizer

from recorder.limits import Limit, raise_on_nonfinite, skip_rate
from recorder.schema import COLUMNS, USER_PREFIX
from recorder.trackers import Tracker
from recorder.trigger import Trigger

# Where in the order of a transition a column stands that is known before the step.
_BEFORE_STEP = ("identity", "batch", "forward", "backward", "clip", "scaler")
_RATES = ("lr", "group_lrs")


def named_optimizers(optimizer: Optimizer | Mapping[str, Optimizer]) -> dict[str, Optimizer]:
    """The optimizers by name, out of a framework's wrappers; a single one is called "optimizer"."""
    named = dict(optimizer) if isinstance(optimizer, Mapping) else {"optimizer": optimizer}
    if not named:
        raise ValueError("no optimizer: pass one, or a dict of named ones")
    for name, each in named.items():
        if not isinstance(name, str):
            raise TypeError(f"an optimizer's name is text, not {name!r}")
        if not isinstance(each, Optimizer):
            raise TypeError(
                f"optimizer must be a torch.optim.Optimizer or a dict of named ones, not {type(each).__name__}"
            )
    return {name: _within(each) for name, each in named.items()}


def per_optimizer(what: str, setting: Any, optimizers: Mapping[str, Optimizer]) -> dict[str, Any]:
    """One setting for all optimizers, or a dict by their names."""
    if not isinstance(setting, Mapping):
        return dict.fromkeys(optimizers, setting)
    unknown = [name for name in setting if name not in optimizers]
    if unknown:
        missing = ", ".join(map(repr, unknown))
        raise ValueError(f"{what} names no optimizer with {missing}: there are {', '.join(optimizers)}")
    return dict(setting)


def max_norms(setting: Any, optimizers: Mapping[str, Optimizer]) -> dict[str, float | None]:
    """The limits to clip to, positive numbers or None."""
    limits = {}
    for name, value in per_optimizer("max_norm", setting, optimizers).items():
        limits[name] = None if value is None else _number("max_norm", value)
        if value is not None and not limits[name] > 0:  # type: ignore[operator]  # the line above made it a number
            raise ValueError(f"max_norm must be a number over 0, or None for no clipping, not {value!r}")
    return limits


def limits(on_nonfinite: str | None, most_skipped: float | None, after: int) -> list[Limit]:
    """What the run is to be ended for."""
    if on_nonfinite not in (None, "raise"):
        raise ValueError(f'on_nonfinite must be None or "raise", not {on_nonfinite!r}')
    if most_skipped is not None and not (0 <= most_skipped < 1 and after >= 1):
        raise ValueError("fail_on_skip_rate must be a share from 0 to below 1, and fail_after at least 1")
    asked = [raise_on_nonfinite()] if on_nonfinite == "raise" else []
    return asked if most_skipped is None else [*asked, skip_rate(most_skipped, after)]


def triggers(given: Sequence[Trigger]) -> tuple[Trigger, ...]:
    """The user's own triggers."""
    try:
        chosen = tuple(given)
    except TypeError:
        chosen = (given,)  # type: ignore[assignment]  # refused below unless it is a single trigger
    for trigger in chosen:
        if not isinstance(trigger, Trigger):
            raise TypeError(f"triggers must be recorder.Trigger values, not {type(trigger).__name__}")
        for column in trigger.columns:
            _refuse_unknown(column)
    return chosen


def triggers_before_the_step(given: Sequence[Trigger]) -> tuple[Trigger, ...]:
    """Triggers that are asked before the optimizer steps, when some columns are not known yet."""
    chosen = triggers(given)
    for column in (column for trigger in chosen for column in trigger.columns):
        if column in COLUMNS and not _is_known_before_step(column):
            raise ValueError(
                f"a capture is decided before the step, when {column!r} is not known yet: give that trigger to "
                "FlightRecorder(triggers=), and a capture one on the loss or the gradient"
            )
    return chosen


def _refuse_unknown(column: str) -> None:
    """Raise ValueError for a column that no row will hold: its trigger would never trip, and nobody would know."""
    if column in COLUMNS or column.startswith(USER_PREFIX):
        return
    near = get_close_matches(column, COLUMNS, 1)
    meant = f"did you mean {near[0]!r}?" if near else f"they are {', '.join(COLUMNS)}."
    kept = f"What t.record() keeps has the name {USER_PREFIX}<name>"
    raise ValueError(f"a trigger looks at {column!r}, which is no column: {meant} {kept}")


def _is_known_before_step(column: str) -> bool:
    return COLUMNS[column].phase in _BEFORE_STEP or column in _RATES


def trackers(given: Sequence[Tracker]) -> tuple[Tracker, ...]:
    """The trackers to be told of rows."""
    chosen = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    for tracker in chosen:
        every = getattr(tracker, "every", None)
        is_whole = isinstance(every, int) and every >= 1
        if not is_whole or not all(hasattr(tracker, name) for name in ("begin", "tell", "close")):
            raise TypeError(
                f"trackers are those of recorder.trackers, such as TensorBoard('logs', every=10), not {tracker!r:.80}"
                + (f" with every={every!r}" if hasattr(tracker, "tell") else "")
            )
    return chosen


def step_number(step: Any) -> int:
    """The loop's step as a column can hold it."""
    number = int(step)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"step {number} does not fit 64 bits: the count of attempts is recorded instead")
    return number


def rank() -> int:
    """This process' rank: of torch.distributed where it runs, else the environment's RANK."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    text = os.environ.get("RANK", "")
    return int(text) if text.isdecimal() else 0


def _within(optimizer: Optimizer) -> Optimizer:
    """What really steps: Accelerate wraps an optimizer in one that has no hooks of its own."""
    while not hasattr(optimizer, "_optimizer_step_pre_hooks"):
        inner = getattr(optimizer, "optimizer", None)
        if not isinstance(inner, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} has no hooks around its step: pass the optimizer within it")
        optimizer = inner
    return optimizer


def _number(what: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must be a number, not {value!r}") from None
    if isnan(number):
        raise ValueError(f"{what} must be a number, not NaN")
    return number
