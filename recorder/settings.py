"""What a recorder is given, checked before anything is written: each refusal says what to pass instead."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

import torch
from torch.optim import Optimizer

from recorder.limits import Limit, raise_on_nonfinite, skip_rate
from recorder.trigger import Trigger


def named_optimizers(optimizer: Optimizer | Mapping[str, Optimizer]) -> dict[str, Optimizer]:
    """The optimizers by name; a single one is called "optimizer"."""
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
    return named


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


def _number(what: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must be a number, not {value!r}") from None
    if isnan(number):
        raise ValueError(f"{what} must be a number, not NaN")
    return number
