"""Faults that grow so slowly that no single row stands out: their onset has no row that shows it."""

from __future__ import annotations

from math import ceil

from benchmarks.diagnosis.case import Case
from benchmarks.diagnosis.faults.data import LEARNED, SPIKE, mislabelled
from benchmarks.diagnosis.loop import Loop
from benchmarks.diagnosis.models import Batch
from benchmarks.diagnosis.setting import Setting

MORE_PER_ROW, LARGER_PER_ROW = 0.005, 1.03


def decaying(loop: Loop, batch: Batch) -> Batch:
    """From the row of the fault on a share of the targets is wrong, and larger on each row by MORE_PER_ROW."""
    wrong = min(1.0, MORE_PER_ROW * (loop.row - loop.at + 1))
    count = ceil(wrong * len(batch[0])) if loop.since else 0
    y = batch[1].clone()
    y[:count] = mislabelled(loop, batch)[1][:count]
    return batch[0], y


def creeping(loop: Loop) -> None:
    """From the row of the fault on each row's learning rate is LARGER_PER_ROW times that of the row before."""
    if loop.since:
        for group in loop.optimizer.param_groups:
            group["lr"] *= LARGER_PER_ROW


def ascending(loop: Loop) -> None:
    """Up the loss from the first row on, slowly."""
    if loop.row == 0:
        loop.onset = 0
        for group in loop.optimizer.param_groups:
            group["maximize"] = True
            group["lr"] *= 0.1


def is_fp32(setting: Setting) -> bool:
    """Whether nothing but the fault itself can end a setting."""
    return setting.precision == "fp32"


FAULTS: tuple[Case, ...] = (
    Case(
        "labels_decay",
        "from one row on more and more labels are wrong, half a percent more on each row",
        is_gradual=True,
        signals=("loss",),
        perhaps=(SPIKE,),
        settings={"batch": 32},
        earliest=LEARNED,
        aftermath=200,
        rows=(400, 480),
        batch=decaying,
    ),
    Case(
        "rate_creeps_up",
        "from one row on the learning rate grows by three percent with each row, and without end",
        is_gradual=True,
        signals=("loss",),
        settings={"schedule": "constant"},
        fits=is_fp32,
        earliest=100,
        aftermath=200,
        rows=(330, 400),
        before=creeping,
    ),
    Case(
        "loss_ascends",
        "the sign of the update is wrong: the loss grows from the first row on",
        is_gradual=True,
        signals=("loss",),
        settings={"schedule": "constant"},
        fits=is_fp32,
        since_start=True,
        before=ascending,
    ),
)
