"""Faults of the data: one bad batch, or wrong data from one row on."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.diagnosis.case import Case
from benchmarks.diagnosis.loop import Loop, forward
from benchmarks.diagnosis.models import LENGTH, LETTERS, Batch
from benchmarks.diagnosis.setting import Setting

Change = Callable[[Loop, Batch], Batch]

SPIKE, NORM = "loss_spike_clean_transition", "large_norm_tiny_coef"
# By then every model predicts so much better than chance that data which cannot be predicted show.
LEARNED = 150


def once(change: Change) -> Change:
    """Change the batch of the row at which the fault begins."""
    return lambda loop, batch: change(loop, batch) if loop.is_here else batch


def from_then(change: Change) -> Change:
    """Change every batch from that row on."""
    return lambda loop, batch: change(loop, batch) if loop.since else batch


def every_epoch(change: Change) -> Change:
    """Change the batch of that row and the same batch of every later epoch."""
    return lambda loop, batch: (
        change(loop, batch) if loop.since and (loop.row - loop.at) % loop.setting.epoch == 0 else batch
    )


def scaled(factor: float) -> Change:
    """Inputs multiplied by a factor."""
    return lambda loop, batch: (batch[0] * factor, batch[1])


def one_sample_scaled(factor: float) -> Change:
    """The inputs of the first sample multiplied by a factor."""

    def change(loop: Loop, batch: Batch) -> Batch:
        x = batch[0].clone()
        x[0] *= factor
        return x, batch[1]

    return change


def filled(value: float) -> Change:
    """One input of the first sample replaced by a value."""

    def change(loop: Loop, batch: Batch) -> Batch:
        x = batch[0].clone()
        x[0].view(-1)[0] = value
        return x, batch[1]

    return change


def targets_scaled(factor: float) -> Change:
    """The target of the first sample multiplied by a factor."""

    def change(loop: Loop, batch: Batch) -> Batch:
        y = batch[1].clone()
        y[0] *= factor
        return batch[0], y

    return change


def mislabelled(loop: Loop, batch: Batch) -> Batch:
    """Targets that have nothing to do with the inputs; numbers are spread four times as wide as the true ones."""
    x, y = batch
    if y.is_floating_point():
        return x, 4 * y.std() * torch.randn(y.shape, generator=loop.dice)
    classes = LETTERS if loop.setting.model == "char" else 4
    return x, (y + torch.randint(1, classes, y.shape, generator=loop.dice)) % classes


def eight_times_as_long(loop: Loop, batch: Batch) -> Batch:
    """Texts of eight times the length that the model was trained on, joined from eight batches."""
    parts = [batch, *(loop.task.draw(loop.dice, loop.setting.batch, 1.0) for _ in range(7))]
    return torch.cat([x for x, _ in parts], 1), torch.cat([y for _, y in parts], 1)


def summed(loop: Loop, batch: Batch) -> Tensor:
    """The sum of the losses over the usual number of letters, whatever their number."""
    return loop.losses(*batch).sum() / (loop.setting.batch * LENGTH)


def sensitive(loop: Loop, batch: Batch) -> Tensor:
    """The same loss, a hundred times the gradient."""
    loss = forward(loop, batch)
    return loss + 99 * (loss - loss.detach()) if loop.is_here else loss


def is_model(*names: str) -> Callable[[Setting], bool]:
    """Whether a setting is of one of these models."""
    return lambda setting: setting.model in names


FAULTS: tuple[Case, ...] = (
    Case(
        "input_x1000",
        "the inputs of one batch were multiplied by 1000",
        rule=SPIKE,
        signals=("loss",),
        fits=is_model("mlp"),
        batch=once(scaled(1e3)),
        perhaps=(NORM, "input_scale_shift"),
    ),
    Case(
        "one_sample_x1000",
        "the inputs of one sample were multiplied by 1000: batch norm squeezes the others to nothing",
        rule=SPIKE,
        signals=("loss",),
        fits=is_model("cnn"),
        earliest=LEARNED,
        rows=(240, 400),
        settings={"batch": 64},
        batch=once(one_sample_scaled(1e3)),
        perhaps=(NORM, "input_scale_shift"),
    ),
    Case(
        "label_noise",
        "the labels of one batch have nothing to do with its inputs",
        rule=SPIKE,
        signals=("loss",),
        earliest=LEARNED,
        rows=(240, 400),
        settings={"batch": 32},
        batch=once(mislabelled),
        perhaps=(NORM,),
    ),
    Case(
        "extreme_length",
        "one batch of texts eight times as long as any before, under a loss that sums over the text",
        rule=SPIKE,
        signals=("loss",),
        fits=is_model("char"),
        batch=once(eight_times_as_long),
        forward=summed,
        perhaps=(NORM,),
    ),
    Case(
        "target_x1e8",
        "one target was multiplied by 1e8",
        rule=SPIKE,
        signals=("loss",),
        fits=is_model("mlp"),
        batch=once(targets_scaled(1e8)),
        perhaps=(NORM,),
    ),
    Case(
        "wrong_units",
        "from one row on the inputs come in millimetres instead of inches",
        rule=SPIKE,
        signals=("loss",),
        checks=("input_scale_shift",),
        fits=is_model("mlp"),
        aftermath=25,
        batch=from_then(scaled(25.4)),
        perhaps=(NORM,),
    ),
    Case(
        "wrong_units_untold",
        "as wrong_units, in a loop that does not tell its inputs",
        rule=SPIKE,
        signals=("loss",),
        unknown={"input_scale_shift": ("input_absmax",)},
        settings={"tells_inputs": False},
        fits=is_model("mlp"),
        aftermath=25,
        batch=from_then(scaled(25.4)),
        perhaps=(NORM,),
    ),
    Case(
        "wrong_units_behind_batch_norm",
        "as wrong_units, where batch norm takes the scale out again: nothing shows but the inputs",
        incident="none",
        checks=("input_scale_shift",),
        fits=is_model("cnn"),
        aftermath=25,
        batch=from_then(scaled(25.4)),
    ),
    Case(
        "nan_input",
        "one input of one batch is NaN",
        rule="loss_nonfinite",
        signals=("loss",),
        fits=is_model("mlp", "cnn"),
        batch=once(filled(float("nan"))),
        perhaps=("input_scale_shift",),
    ),
    Case(
        "inf_input",
        "one input of one batch is infinite",
        rule="loss_nonfinite",
        signals=("loss",),
        fits=is_model("mlp", "cnn"),
        batch=once(filled(float("inf"))),
        perhaps=("input_scale_shift",),
    ),
    Case(
        "sensitive_input",
        "one batch with an ordinary loss and a hundred times the gradient",
        rule=NORM,
        signals=("grad_norm",),
        settings={"init_scale": 256.0},
        forward=sensitive,
    ),
    Case(
        "sensitive_input_skipped",
        "as sensitive_input, under a scaler whose scale is then too large: the step is skipped",
        rule="attempted_not_executed",
        signals=("grad_norm", "executed"),
        fits=lambda setting: setting.precision == "fp16",
        forward=sensitive,
    ),
    Case(
        "poisoned_sample",
        "the same poisoned batch comes back every epoch",
        rule=SPIKE,
        signals=("loss",),
        checks=("repeated_batch",),
        settings={"epoch": 24},
        earliest=LEARNED,
        aftermath=80,
        rows=(300, 400),
        batch=every_epoch(mislabelled),
        perhaps=(NORM,),
    ),
    Case(
        "poisoned_sample_untold",
        "as poisoned_sample, in a loop that does not name its batches",
        rule=SPIKE,
        signals=("loss",),
        unknown={"repeated_batch": ("batch_id",)},
        settings={"epoch": 24, "tells_batch": False},
        earliest=LEARNED,
        aftermath=80,
        rows=(300, 400),
        batch=every_epoch(mislabelled),
        perhaps=(NORM,),
    ),
)
