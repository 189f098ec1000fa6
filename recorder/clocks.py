"""Attempted, executed, scheduled: the three clocks of one optimizer, and how each is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer


@dataclass(slots=True)
class Clocks:
    """Counts since the run began, over all its segments. `scheduled` is None without a scheduler."""

    attempted: int = 0
    executed: int = 0
    scheduled: int | None = None


class StepWatch:
    """Calls back around every attempt and execution of one optimizer's step.

    A post-step hook alone is not enough: it does not fire where a scaler declines a step, and it does fire on a
    declined step of a fused optimizer, which then carries `found_inf` while the hook runs. So attempts are seen by the
    pre-step hook and by the scaler's own `step` (see `ScalerWatch`), and executions by the post-step hook together
    with `found_inf`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        before: Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, Any] | None],
        after: Callable[[Tensor | None], None],
    ) -> None:
        # A fused optimizer raises where its scaler's found_inf is kept alive under another name and changed.
        def post(stepped: Optimizer, _args: Any, _kwargs: Any) -> None:
            after(getattr(stepped, "found_inf", None))

        def pre(_stepped: Optimizer, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
            return before(args, kwargs)

        self._handles = [optimizer.register_step_pre_hook(pre), optimizer.register_step_post_hook(post)]

    def detach(self) -> None:
        for handle in self._handles:
            handle.remove()


class ScalerWatch:
    """A GradScaler, or the absence of one, as a recorder sees it."""

    def __init__(self, scaler: torch.amp.GradScaler | None) -> None:
        self._scaler = scaler
        self._original: Callable[..., Any] | None = None

    @property
    def enabled(self) -> bool:
        return self._scaler is not None and self._scaler.is_enabled()

    def scale(self) -> Tensor | float | None:
        """The scale now, as a tensor of its own on the scaler's device once there is one; None without scaling."""
        if self._scaler is None or not self._scaler.is_enabled():
            return None
        scale = self._scaler._scale
        if scale is None:
            # get_scale() reads a device back; before the first scale() it only returns the initial setting.
            return float(self._scaler.get_scale())
        return float(scale.numpy()) if scale.device.type == "cpu" else scale.detach().clone()

    def holds_scaled(self, optimizer: Optimizer) -> bool:
        """Whether this optimizer's gradients are still multiplied by the scale."""
        if self._scaler is None or not self._scaler.is_enabled():
            return False
        if self._scaler._scale is None:
            return False  # nothing has been scaled yet
        state = self._scaler._per_optimizer_states.get(id(optimizer))
        return state is None or state["stage"].name == "READY"

    def unscale_(self, optimizer: Optimizer) -> None:
        """`scaler.unscale_`, unless it was done already in this step."""
        if self._scaler is not None and self.holds_scaled(optimizer):
            self._scaler.unscale_(optimizer)

    def attach(self, attempt: Mapping[int, Callable[[bool], None]]) -> None:
        """Call `attempt[id(optimizer)]` with True before each `scaler.step(optimizer)` and with False after it.

        No hook of the optimizer fires where the scaler declines.
        """
        if self._scaler is None:
            return
        original = self._scaler.step

        @wraps(original)
        def step(optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
            tell = attempt.get(id(optimizer))
            if tell is None:
                return original(optimizer, *args, **kwargs)
            tell(True)
            try:
                return original(optimizer, *args, **kwargs)
            finally:
                tell(False)

        self._original = original
        self._scaler.step = step  # type: ignore[method-assign]  # on the instance, and undone by detach

    def detach(self) -> None:
        if self._scaler is not None and self._original is not None:
            del self._scaler.step
            self._original = None


def scheduler_position(scheduler: Any) -> int | None:
    """A scheduler's own clock: `last_epoch`, or that of the first scheduler it chains; None without a scheduler."""
    if scheduler is None:
        return None
    if hasattr(scheduler, "last_epoch"):
        return int(scheduler.last_epoch)
    chained = getattr(scheduler, "_schedulers", None)
    return scheduler_position(chained[0]) if chained else None
