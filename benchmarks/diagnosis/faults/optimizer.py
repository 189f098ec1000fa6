"""Faults of the optimizer: its learning rate, its memory, its gradients."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.diagnosis.case import Case
from benchmarks.diagnosis.faults.data import NORM
from benchmarks.diagnosis.loop import Loop, clear
from benchmarks.diagnosis.setting import Setting

UPDATE = "ordinary_grad_abnormal_update"
SIZE = ("update_ratio", "update_norm", "lr")


def rate_times(factor: float, for_good: bool) -> Callable[[Loop], None]:
    """Multiply the learning rate at the row of the fault; take it back after one row unless `for_good`."""

    def before(loop: Loop) -> None:
        if not for_good and loop.row == loop.at + 1 and loop.scheduler is None:
            _multiply(loop, 1 / factor)
        if loop.is_here:
            _multiply(loop, factor)
            if for_good and loop.scheduler is not None:
                loop.scheduler.base_lrs = [rate * factor for rate in loop.scheduler.base_lrs]

    return before


def _multiply(loop: Loop, factor: float) -> None:
    for group in loop.optimizer.param_groups:
        group["lr"] *= factor


def forgets_faster(loop: Loop) -> None:
    """A second moment that holds little more than the gradient of the row itself."""
    if loop.is_here:
        for group in loop.optimizer.param_groups:
            group["betas"] = (0.9, 0.05)


def holds_on(loop: Loop) -> None:
    """A first moment over 200 steps: the update goes where the gradients used to point."""
    if loop.is_here:
        for group in loop.optimizer.param_groups:
            group["betas"] = (0.995, group["betas"][1])


def wakes(loop: Loop) -> None:
    """Let the expert in, whose second moment has seen nothing but zeros."""
    if loop.is_here:
        loop.model.gate = 0.03


def keeps_gradients(loop: Loop) -> None:
    """Clear the gradients until the fault begins."""
    if not loop.since:
        clear(loop)


def dominating(loop: Loop) -> None:
    """From the row of the fault on, multiply the gradient of the last module by 50."""
    if loop.is_here:
        for parameter in list(loop.model.children())[-1].parameters():
            parameter.register_hook(lambda gradient: 50 * gradient)


def is_adam(setting: Setting) -> bool:
    """Whether the optimizer divides by a second moment."""
    return setting.optimizer != "SGD"


def is_unscaled(setting: Setting) -> bool:
    """Whether old gradients stay as large as new ones: a scaler divides them by its scale once more each step."""
    return setting.precision != "fp16"


FAULTS: tuple[Case, ...] = (
    Case(
        "lr_x30_once",
        "the learning rate was 30 times itself for one step",
        rule=UPDATE,
        signals=SIZE,
        before=rate_times(30, for_good=False),
    ),
    Case(
        "lr_x30_for_good",
        "the learning rate was multiplied by 30",
        rule=UPDATE,
        signals=SIZE,
        before=rate_times(30, for_good=True),
    ),
    Case(
        "beta2_too_small",
        "beta2 fell from 0.999 to 0.05",
        rule=UPDATE,
        signals=(*SIZE, "update_cosine"),
        fits=is_adam,
        aftermath=25,
        before=forgets_faster,
    ),
    Case(
        "beta1_too_large",
        "beta1 rose from 0.9 to 0.995: the updates often oppose their gradients",
        incident="may",
        checks=("alignment_shift",),
        perhaps=(UPDATE,),
        fits=lambda setting: setting.model == "mlp" and is_adam(setting),
        earliest=530,
        aftermath=530,
        rows=(1_100, 1_300),
        before=holds_on,
    ),
    Case(
        "quiet_then_burst",
        "a part of the model wakes after a long quiet stretch: Adam's second moment of it is 0",
        rule=UPDATE,
        signals=SIZE,
        settings={"model": "expert"},
        fits=lambda setting: setting.model == "mlp" and is_adam(setting),
        earliest=1_000,
        rows=(1_300, 1_400),
        before=wakes,
    ),
    Case(
        "zero_grad_forgotten",
        "zero_grad is left out from one row on",
        incident="may",
        checks=("gradients_not_cleared",),
        perhaps=(NORM, UPDATE),
        fits=is_unscaled,
        settings={"max_norm": None},
        aftermath=60,
        clear=keeps_gradients,
    ),
    Case(
        "zero_grad_never",
        "zero_grad is never called",
        incident="may",
        checks=("gradients_not_cleared",),
        fits=is_unscaled,
        settings={"max_norm": None},
        since_start=True,
        clear=keeps_gradients,
    ),
    Case(
        "group_dominates",
        "one module's gradient is 50 times too large throughout",
        incident="none",
        checks=("group_dominates_norm",),
        settings={"init_scale": 256.0},
        since_start=True,
        before=dominating,
    ),
    Case(
        "group_dominates_from",
        "one module's gradient is 50 times too large from one row on",
        rule=NORM,
        signals=("grad_norm",),
        checks=("group_dominates_norm",),
        settings={"init_scale": 256.0},
        aftermath=60,
        before=dominating,
    ),
)
