"""Faults of mixed precision: the scaler's order of calls, and what happens between them."""

from __future__ import annotations

from collections.abc import Callable
from warnings import catch_warnings, simplefilter

import torch
from torch import Tensor

from benchmarks.diagnosis.case import Case
from benchmarks.diagnosis.faults.arithmetic import BROKEN, is_fp16
from benchmarks.diagnosis.faults.data import NORM
from benchmarks.diagnosis.faults.optimizer import UPDATE
from benchmarks.diagnosis.loop import Loop, advance, forward
from benchmarks.diagnosis.models import Batch
from recorder.transition import Transition

BURSTS = 24


def tests_scaled_gradients(loop: Loop, t: Transition, loss: Tensor) -> None:
    """Look at the scaled gradients and `continue` where they are not finite: no unscale_, step or update."""
    loop.scaler.scale(loss).backward()
    t.measure_grad_norm()
    if not _finite(loop):
        loop.onset = loop.row if loop.onset is None else loop.onset
        return
    t.clip_grad_norm_()
    advance(loop, t)


def _finite(loop: Loop) -> bool:
    return all(bool(torch.isfinite(p.grad).all()) for p in loop.model.parameters() if p.grad is not None)


def divides_by_zero(measures_first: bool) -> Callable[[Loop, Transition, Tensor], None]:
    """On the row of the fault, multiply the unscaled gradients by 0 / 0, after or before they are measured."""

    def step(loop: Loop, t: Transition, loss: Tensor) -> None:
        loop.scaler.scale(loss).backward()
        loop.scaler.unscale_(loop.optimizer)
        if measures_first:
            t.clip_grad_norm_()
        if loop.is_here:
            for parameter in loop.model.parameters():
                parameter.grad *= float("nan")
        if not measures_first:
            t.clip_grad_norm_()
        advance(loop, t)

    return step


def schedules_always(loop: Loop, t: Transition, loss: Tensor) -> None:
    """Move the scheduler on every row, executed or not."""
    loop.scaler.scale(loss).backward()
    t.clip_grad_norm_()
    loop.scaler.step(loop.optimizer)
    loop.scaler.update()
    if loop.onset is None and not t.executed:
        loop.onset = loop.row
    with catch_warnings():
        simplefilter("ignore")  # torch warns of just this
        loop.scheduler.step()


def in_and_out(loop: Loop, batch: Batch) -> Tensor:
    """The same loss, and on three rows of every 24 a thousand times the gradient: out of the range of fp16."""
    loss = forward(loop, batch)
    return loss + 1023 * (loss - loss.detach()) if loop.row % BURSTS >= BURSTS - 3 else loss


def autocast_elsewhere(loop: Loop, batch: Batch) -> Tensor:
    """Autocast for a device that the model is not on: it runs in fp32, under a scaler."""
    with catch_warnings():
        simplefilter("ignore")  # torch warns that there is no such device
        with torch.autocast("cuda", dtype=torch.float16):
            out = loop.model(batch[0])
    return loop.task.losses(out, batch[1]).mean()


FAULTS: tuple[Case, ...] = (
    Case(
        "tests_scaled_gradients",
        "the loop leaves out unscale_, step and update where scaled gradients are not finite: the scale is stuck",
        rule="no_attempt",
        signals=("grad_norm", "attempted"),
        checks=("scale_never_updates",),
        perhaps=("skip_rate", BROKEN),
        settings={"init_scale": 2.0**12, "growth_interval": 8},
        fits=is_fp16,
        since_start=True,
        rows=(240, 300),
        step=tests_scaled_gradients,
    ),
    Case(
        "nan_after_unscale",
        "a NaN made between unscale_ and step, which the scaler has not seen: it executes",
        rule=BROKEN,
        signals=("grad_norm",),
        checks=("nan_after_unscale",),
        fits=is_fp16,
        step=divides_by_zero(measures_first=False),
    ),
    Case(
        "nan_after_clipping",
        "a NaN made between clipping and step, which neither the scaler nor the norm has seen",
        rule=UPDATE,
        signals=("update_ratio", "update_norm"),
        checks=("nan_after_unscale",),
        fits=is_fp16,
        step=divides_by_zero(measures_first=True),
    ),
    Case(
        "schedule_on_skips",
        "the scheduler moves on skipped steps",
        incident="none",
        checks=("schedule_drift",),
        settings={"init_scale": 2.0**24, "schedule": "warm_up_cosine"},
        fits=is_fp16,
        since_start=True,
        step=schedules_always,
    ),
    Case(
        "scale_oscillation",
        "gradients are in the range of fp16 on most rows and far out of it on a few, again and again",
        incident="may",
        checks=("scale_oscillation",),
        perhaps=("skip_rate", BROKEN, "attempted_not_executed", NORM),
        settings={"growth_interval": 4},
        fits=is_fp16,
        since_start=True,
        forward=in_and_out,
    ),
    Case(
        "skip_rate",
        "the scale grows back so soon that more than one attempt in twenty is skipped",
        incident="may",
        checks=("skip_rate",),
        perhaps=("scale_oscillation", BROKEN, "attempted_not_executed"),
        settings={"growth_interval": 8},
        fits=lambda setting: setting.model == "mlp" and is_fp16(setting),
        since_start=True,
        rows=(1_100, 1_200),
    ),
    Case(
        "autocast_elsewhere",
        "autocast is for a device that the model is not on",
        incident="none",
        checks=("autocast_device_mismatch",),
        fits=is_fp16,
        since_start=True,
        forward=autocast_elsewhere,
    ),
)
