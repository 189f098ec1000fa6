"""Resumes that do not bring everything back."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.diagnosis.case import Case
from benchmarks.diagnosis.faults.arithmetic import is_fp16
from benchmarks.diagnosis.faults.optimizer import SIZE, UPDATE, is_adam
from benchmarks.diagnosis.loop import Loop

INCOMPLETE = "resume_incomplete"


def resumed(*without: str, tells: bool = True) -> Callable[[Loop], None]:
    """Resume before the row of the fault, without some parts of the state."""

    def before(loop: Loop) -> None:
        if loop.is_here:
            loop.resume(without, tells)

    return before


FAULTS: tuple[Case, ...] = (
    Case(
        "resume_without_optimizer",
        "Adam's moments did not come back",
        rule=UPDATE,
        signals=SIZE,
        checks=(INCOMPLETE,),
        fits=is_adam,
        settings={"batch": 8},
        earliest=60,
        before=resumed("optimizer"),
    ),
    Case(
        "resume_without_momentum",
        "the momentum of SGD did not come back: smaller steps, and nothing that spikes",
        incident="may",
        perhaps=(UPDATE,),
        checks=(INCOMPLETE,),
        fits=lambda setting: not is_adam(setting),
        earliest=60,
        before=resumed("optimizer"),
    ),
    Case(
        "resume_without_optimizer_untold",
        "Adam's moments did not come back, and the loop does not say what did",
        rule=UPDATE,
        signals=SIZE,
        unknown={INCOMPLETE: ("restored",)},
        perhaps=(INCOMPLETE,),
        fits=is_adam,
        settings={"batch": 8},
        earliest=60,
        before=resumed("optimizer", tells=False),
    ),
    Case(
        "resume_without_scaler",
        "the loss scale starts from its first value again and is calibrated again",
        incident="none",
        checks=(INCOMPLETE,),
        settings={"init_scale": 2.0**24},
        fits=is_fp16,
        earliest=60,
        aftermath=30,
        before=resumed("scaler"),
    ),
    Case(
        "resume_without_scheduler",
        "the learning rate starts from its first value again",
        incident="may",
        perhaps=(UPDATE,),
        checks=(INCOMPLETE,),
        settings={"schedule": "cosine"},
        earliest=120,
        aftermath=30,
        before=resumed("scheduler"),
    ),
    Case(
        "resume_with_replayed_batches",
        "the sampler did not come back: the batches of the start are trained on again",
        incident="none",
        checks=(INCOMPLETE,),
        earliest=60,
        aftermath=30,
        before=resumed("sampler"),
    ),
)
