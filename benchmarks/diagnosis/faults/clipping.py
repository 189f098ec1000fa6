"""Clipping in the wrong place, or seen from the wrong side."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn.utils import clip_grad_norm_, get_total_norm

from benchmarks.diagnosis.case import Case
from benchmarks.diagnosis.faults.arithmetic import is_fp16
from benchmarks.diagnosis.loop import Loop, advance
from recorder.transition import Transition

LIMIT = 0.3


def clips_scaled(tells: bool) -> Callable[[Loop, Transition, Tensor], None]:
    """Clip while the gradients are still multiplied by the loss scale."""

    def step(loop: Loop, t: Transition, loss: Tensor) -> None:
        loop.scaler.scale(loss).backward()
        norm = clip_grad_norm_(loop.model.parameters(), LIMIT)
        if tells:
            t.observe_grad_norm(norm, LIMIT)
        advance(loop, t)

    return step


def clips_after(loop: Loop, t: Transition, loss: Tensor) -> None:
    """Step first, clip then."""
    loop.scaler.scale(loss).backward()
    advance(loop, t)
    t.clip_grad_norm_()


def clips_micro_batches(loop: Loop, t: Transition, loss: Tensor) -> None:
    """Clip after the backward of every micro-batch."""
    loop.scaler.scale(loss / loop.setting.accumulate).backward()
    t.clip_grad_norm_()
    if loop.steps_now:
        advance(loop, t)


def logs_clipped_norm(loop: Loop, t: Transition, loss: Tensor) -> None:
    """Tell the norm that clipping left behind."""
    loop.scaler.scale(loss).backward()
    loop.scaler.unscale_(loop.optimizer)
    clip_grad_norm_(loop.model.parameters(), LIMIT)
    gradients = [p.grad for p in loop.model.parameters() if p.grad is not None]
    t.observe_grad_norm(get_total_norm(gradients), LIMIT)
    advance(loop, t)


FAULTS: tuple[Case, ...] = (
    Case(
        "clip_before_unscale",
        "gradients are clipped while they are multiplied by the loss scale",
        incident="none",
        checks=("clip_before_unscale",),
        perhaps=("always_clipping",),
        fits=is_fp16,
        since_start=True,
        step=clips_scaled(tells=True),
    ),
    Case(
        "clip_before_unscale_untold",
        "as clip_before_unscale, in a loop that does not tell its clipping",
        incident="none",
        unknown={"clip_before_unscale": ("grad_norm_is_unscaled", "grad_norm_source", "clip_coef")},
        perhaps=("clip_before_unscale",),
        fits=is_fp16,
        since_start=True,
        step=clips_scaled(tells=False),
    ),
    Case(
        "clip_after_step",
        "gradients are clipped after the step has used them",
        incident="none",
        checks=("clip_after_step",),
        settings={"max_norm": LIMIT},
        since_start=True,
        step=clips_after,
    ),
    Case(
        "clip_per_micro_batch",
        "every micro-batch of an accumulation is clipped by itself",
        incident="none",
        checks=("clip_per_microbatch",),
        perhaps=("always_clipping",),
        settings={"max_norm": LIMIT, "accumulate": 4},
        fits=lambda setting: not is_fp16(setting),
        since_start=True,
        rows=(320, 400),
        step=clips_micro_batches,
    ),
    Case(
        "norm_logged_after_clip",
        "the norm is logged after clipping",
        incident="none",
        checks=("norm_logged_after_clip",),
        since_start=True,
        step=logs_clipped_norm,
    ),
    Case(
        "always_clipping",
        "max_norm lies below every gradient",
        incident="none",
        checks=("always_clipping",),
        settings={"max_norm": 1e-2},
        since_start=True,
    ),
)
