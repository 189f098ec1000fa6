"""A framework's own clipping: the gradients are measured before it, and what it clipped by is told after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Any

from torch import Tensor

from recorder.transition import Transition


def clip_by_norm(
    t: Transition, clip: Callable[..., Any], parameters: Iterable[Tensor], max_norm: Any, *rest: Any, **named: Any
) -> Any:
    """Let the framework clip: `clip(parameters, max_norm, ...)`, which returns the norm before it.

    A limit of infinity is how frameworks ask for the norm alone.
    """
    tensors, owners = measured(t, parameters)
    norm = clip(tensors, max_norm, *rest, **named)
    if norm is not None and max_norm != inf:
        for owner in owners:
            owner.observe_grad_norm(norm, max_norm)
    return norm


def measured(t: Transition, parameters: Iterable[Tensor]) -> tuple[list[Tensor], list[Transition]]:
    """The parameters, and the face of each optimizer that owns one of them, with its gradient measured."""
    tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    owners = t.owning(tensors)
    for owner in owners:
        owner.measure_grad_norm()
    return tensors, owners
