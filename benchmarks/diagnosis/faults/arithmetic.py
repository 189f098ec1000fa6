"""Faults of arithmetic: a forward that leaves the finite numbers, or a backward that does though the loss is finite."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.diagnosis.case import Case
from benchmarks.diagnosis.loop import Loop, forward
from benchmarks.diagnosis.models import Batch
from benchmarks.diagnosis.setting import Setting

# Given the unreduced losses, each adds a term that should be harmless.
Term = Callable[[Tensor], Tensor]


def added(term: Term, for_good: bool = False) -> Callable[[Loop, Batch], Tensor]:
    """The loss with a small term on the row at which the fault begins, or from it on."""

    def loss(loop: Loop, batch: Batch) -> Tensor:
        if not (loop.since if for_good else loop.is_here):
            return forward(loop, batch)
        losses = loop.losses(*batch)
        return losses.mean() + 1e-3 * term(losses)

    return loss


def log_of_zero(losses: Tensor) -> Tensor:
    """The logarithm of probabilities of which a mask has made one exactly 0."""
    mask = torch.ones_like(losses)
    mask[0] = 0
    return -(mask * torch.exp(-losses)).log().mean()


def sqrt_of_zero(losses: Tensor) -> Tensor:
    """A distance that is exactly 0: the derivative of its root is infinite."""
    return (losses - losses.detach()).square().sum().sqrt()


def acos_of_one(losses: Tensor) -> Tensor:
    """The angle between a vector and itself."""
    square = losses.square().sum()
    return torch.acos(square / square.detach())


def masked_root(losses: Tensor) -> Tensor:
    """The root of a negative number that where() leaves out of the value, and not out of the gradient."""
    below = -1 - losses
    return torch.where(below > 0, below.sqrt(), torch.zeros_like(below)).mean()


def steeper(loop: Loop, batch: Batch) -> Tensor:
    """The same loss, and from the row of the fault on 256 times the gradient."""
    loss = forward(loop, batch)
    return loss + 255 * (loss - loss.detach()) if loop.since else loss


def overflowing_head(loop: Loop, batch: Batch) -> Tensor:
    """A head whose output passes 65,504 in fp16."""
    if not loop.is_here:
        return forward(loop, batch)
    x, y = batch
    with torch.autocast("cpu", dtype=torch.float16):
        out = loop.model(x).half() * 1e4 * 1e4
    return loop.task.losses(out, y).mean()


def is_fp16(setting: Setting) -> bool:
    """Whether a setting runs in fp16 under a scaler."""
    return setting.precision == "fp16"


BROKEN = "grad_nonfinite_loss_finite"

FAULTS: tuple[Case, ...] = (
    Case("log_zero", "log(0) in the forward", rule="loss_nonfinite", signals=("loss",), forward=added(log_of_zero)),
    Case("sqrt_zero", "sqrt(0) in the backward", rule=BROKEN, signals=("grad_norm",), forward=added(sqrt_of_zero)),
    Case("acos_one", "acos(1) in the backward", rule=BROKEN, signals=("grad_norm",), forward=added(acos_of_one)),
    Case(
        "masked_where",
        "a masked where() in the backward",
        rule=BROKEN,
        signals=("grad_norm",),
        forward=added(masked_root),
    ),
    Case(
        "fp16_forward_overflow",
        "an fp16 output past 65,504 in the forward",
        rule="loss_nonfinite",
        signals=("loss",),
        fits=is_fp16,
        forward=overflowing_head,
    ),
    Case(
        "fp16_backward_overflow",
        "from one row on the gradient is 256 times itself, and overflows until the scaler has found a scale for it",
        rule="attempted_not_executed",
        signals=("grad_norm", "executed"),
        perhaps=(BROKEN, "large_norm_tiny_coef", "scale_collapse"),
        fits=is_fp16,
        aftermath=30,
        forward=steeper,
    ),
    Case(
        "scale_collapse",
        "every backward is NaN from one row on, and the scaler halves its scale for ever",
        rule=BROKEN,
        signals=("grad_norm",),
        checks=("scale_collapse",),
        perhaps=("skip_rate", "attempted_not_executed"),
        fits=is_fp16,
        aftermath=40,
        forward=added(sqrt_of_zero, for_good=True),
    ),
)
