"""Faults of the log: the training is sound, and what is written of it is not."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.diagnosis.case import Case
from benchmarks.diagnosis.faults.arithmetic import BROKEN
from benchmarks.diagnosis.faults.data import LEARNED, NORM, SPIKE, filled, is_model, mislabelled, once, scaled
from benchmarks.diagnosis.loop import Loop
from recorder.transition import Transition


def half_the_count(loop: Loop, t: Transition, loss: Tensor) -> None:
    """From the row of the fault on, divide the sum of the losses by half of their count."""
    share = 2 if loop.since else 1
    t.observe_loss(loss.detach() * share, count=loop.setting.batch // share)


def half_the_count_untold(loop: Loop, t: Transition, loss: Tensor) -> None:
    """As half_the_count, without telling the count."""
    t.observe_loss(loss.detach() * (2 if loop.since else 1))


def smoothed(loop: Loop, t: Transition, loss: Tensor) -> None:
    """Tell a running mean of the loss."""
    mean = loop.notes.get("mean", loss.item())
    loop.notes["mean"] = 0.95 * mean + 0.05 * loss.item()
    t.observe_loss(loop.notes["mean"], count=loop.setting.batch)


def one_row_late(loop: Loop, t: Transition, loss: Tensor) -> None:
    """Tell the loss of the row before."""
    t.observe_loss(loop.notes.get("before", loss.item()), count=loop.setting.batch)
    loop.notes["before"] = loss.item()


def nan_as_zero(loop: Loop, t: Transition, loss: Tensor) -> None:
    """Tell 0 where the loss is NaN."""
    t.observe_loss(torch.nan_to_num(loss.detach(), nan=0.0, posinf=0.0), count=loop.setting.batch)


def keep_silent(loop: Loop, t: Transition, loss: Tensor) -> None:
    """Tell no loss."""


def leaves_out_steps(loop: Loop) -> int:
    """A count of steps that jumps by 50 at the row of the fault."""
    return loop.row + 50 * loop.since


def own_clipping(loop: Loop, t: Transition, loss: Tensor) -> None:
    """Clip without telling: the recorder sees the norm only at the step."""
    loop.scaler.scale(loss).backward()
    loop.scaler.unscale_(loop.optimizer)
    torch.nn.utils.clip_grad_norm_(loop.model.parameters(), 1.0)
    loop.scaler.step(loop.optimizer)
    loop.scaler.update()
    if loop.scheduler is not None and t.executed:
        loop.scheduler.step()


FAULTS: tuple[Case, ...] = (
    Case(
        "loss_denominator_halved",
        "the logged loss is divided by half of the targets",
        incident="may",
        checks=("loss_denominator_changed",),
        perhaps=(SPIKE,),
        aftermath=30,
        log=half_the_count,
    ),
    Case(
        "loss_denominator_halved_untold",
        "as loss_denominator_halved, in a log without the count of targets",
        incident="may",
        perhaps=(SPIKE,),
        unknown={"loss_denominator_changed": ("loss_count",)},
        aftermath=30,
        log=half_the_count_untold,
    ),
    Case(
        "loss_smoothed",
        "the loss is smoothed before it is logged",
        incident="none",
        checks=("loss_smoothed",),
        since_start=True,
        log=smoothed,
    ),
    Case(
        "gap_in_log",
        "50 steps are not in the log",
        incident="none",
        checks=("gap_in_log",),
        number=leaves_out_steps,
    ),
    Case(
        "loss_logged_late",
        "one batch of a thousand times the inputs, in a log whose losses stand one row too late",
        rule=NORM,
        signals=("grad_norm",),
        fits=lambda setting: setting.model == "mlp" and setting.precision != "fp16",
        batch=once(scaled(1e3)),
        log=one_row_late,
        perhaps=("input_scale_shift",),
    ),
    Case(
        "masked_nan_loss",
        "one input is NaN, and the log writes the loss as 0",
        rule=BROKEN,
        signals=("grad_norm",),
        checks=("masked_nan_loss",),
        perhaps=("input_scale_shift",),
        fits=is_model("mlp", "cnn"),
        settings={"guarded": True},
        batch=once(filled(float("nan"))),
        log=nan_as_zero,
    ),
    Case(
        "loss_untold",
        "one batch of a thousand times the inputs, in a loop that tells no loss",
        rule=NORM,
        signals=("grad_norm",),
        unknown={"loss_nonfinite": ("loss",), SPIKE: ("loss",)},
        perhaps=("input_scale_shift", BROKEN),
        fits=lambda setting: setting.model == "mlp" and setting.precision != "fp16",
        batch=once(scaled(1e3)),
        log=keep_silent,
    ),
    Case(
        "norm_untold",
        "one mislabelled batch, in a loop that clips by itself and tells nothing of it",
        signals=("loss",),
        unknown={SPIKE: ("grad_norm",), NORM: ("grad_norm",)},
        # a norm that is far out even behind the clipping was large
        perhaps=("norm_logged_after_clip", NORM),
        # under a scaler the step may be skipped, and its gradient is then known not to be finite
        fits=lambda setting: setting.precision != "fp16",
        earliest=LEARNED,
        rows=(240, 400),
        batch=once(mislabelled),
        step=own_clipping,
    ),
)
