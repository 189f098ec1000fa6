"""Attempted, executed, scheduled: the three clocks of one optimizer, and how each is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
    pre-step hook and by the scaler's own `step` (see `recorder.scaling`), and executions by the post-step hook together
    with `found_inf`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        before: Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, Any] | None],
        after: Callable[[Tensor | None], None],
    ) -> None:
        def post(stepped: Optimizer, _args: Any, _kwargs: Any) -> None:
            after(getattr(stepped, "found_inf", None))

        def pre(_stepped: Optimizer, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
            return before(args, kwargs)

        # A compiled step runs its hooks as they are: traced, they would be compiled again for every kind of row.
        self._handles = [
            optimizer.register_step_pre_hook(torch.compiler.disable(pre)),  # type: ignore[no-untyped-call]  # torch's own
            optimizer.register_step_post_hook(torch.compiler.disable(post)),  # type: ignore[no-untyped-call]  # as above
        ]

    def detach(self) -> None:
        for handle in self._handles:
            handle.remove()


@dataclass(frozen=True, slots=True)
class SchedulerPosition:
    """Where a scheduler stands: its count of steps, and its place within a cycle where it has one."""

    epoch: int
    within: float

    def moved_since(self, earlier: SchedulerPosition) -> int:
        """By how many steps it went on; 0 where it was set back, as by loading an older state.

        A scheduler that is told fractions of an epoch moves within its cycle without counting.
        """
        return max(0, self.epoch - earlier.epoch) or int(self.epoch == earlier.epoch and self.within != earlier.within)


def scheduler_position(scheduler: Any) -> SchedulerPosition | None:
    """A scheduler's own clock: `last_epoch`, or that of the first scheduler it chains; None without a scheduler."""
    if scheduler is None:
        return None
    if _is_accelerated(scheduler):
        return scheduler_position(scheduler.scheduler)
    if hasattr(scheduler, "last_epoch"):
        return SchedulerPosition(int(scheduler.last_epoch), float(getattr(scheduler, "T_cur", 0)))
    chained = getattr(scheduler, "_schedulers", None)
    return scheduler_position(chained[0]) if chained else None


def scheduler_stride(scheduler: Any) -> int:
    """How many steps a scheduler takes where the loop steps it once: Accelerate's takes one for every process."""
    if not _is_accelerated(scheduler) or not scheduler.step_with_optimizer or scheduler.split_batches:
        return 1
    states = [getattr(optimizer, "accelerator_state", None) for optimizer in scheduler.optimizers]
    return max((int(state.num_processes) for state in states if state is not None), default=1)


def _is_accelerated(scheduler: Any) -> bool:
    """Whether this is Accelerate's wrapper around a scheduler, told without importing Accelerate."""
    return all(hasattr(scheduler, name) for name in ("scheduler", "optimizers", "step_with_optimizer", "split_batches"))
