"""Faults after which an executed step moves less than it should, or nothing."""

from __future__ import annotations

from copy import deepcopy

from torch import Tensor, nn

from benchmarks.diagnosis.case import Case
from benchmarks.diagnosis.loop import Loop

STILL = "executed_not_moved"


def cut_off(loop: Loop) -> None:
    """Detach what the middle of the model gives on: nothing before it has a gradient any more."""
    if loop.is_here:
        children = list(loop.model.children())
        children[len(children) // 2].register_forward_hook(_detached)


def _detached(module: nn.Module, inputs: object, output: Tensor) -> Tensor:
    return output.detach()


def replaced(loop: Loop) -> None:
    """Train on a copy of the model; the optimizer still holds the parameters of the old one."""
    if loop.is_here:
        loop.model = deepcopy(loop.model)


def stopped(loop: Loop) -> None:
    """A learning rate of 0."""
    if loop.is_here:
        for group in loop.optimizer.param_groups:
            group["lr"] = 0.0
        if loop.scheduler is not None:
            loop.scheduler.base_lrs = [0.0 for _ in loop.scheduler.base_lrs]


def rounded_away(loop: Loop) -> None:
    """A learning rate whose steps are below half of what bf16 resolves near 1."""
    if loop.row == 0:
        _rate(loop, 2e-2)
    if loop.is_here:
        _rate(loop, 1e-6)


def _rate(loop: Loop, rate: float) -> None:
    for group in loop.optimizer.param_groups:
        group["lr"] = rate


FAULTS: tuple[Case, ...] = (
    Case(
        "frozen_layer",
        "half of the model is cut off by a detach(): no gradient",
        rule=STILL,
        signals=("grad_none_params",),
        before=cut_off,
    ),
    Case(
        "stale_optimizer",
        "the optimizer holds the parameters of a model that was replaced: no gradient at all",
        rule=STILL,
        signals=("moved", "grad_none_params"),
        fits=lambda setting: setting.precision != "fp16",
        before=replaced,
    ),
    Case("lr_zero", "the learning rate fell to 0", rule=STILL, signals=("moved",), before=stopped),
    Case(
        "bf16_rounded_away",
        "the updates of bf16 parameters are too small to change them",
        rule=STILL,
        signals=("moved",),
        settings={"model": "gains", "schedule": "constant"},
        fits=lambda setting: setting.model == "mlp" and setting.precision == "fp32" and setting.optimizer != "SGD",
        before=rounded_away,
    ),
)
