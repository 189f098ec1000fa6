"""What a recorded loop is like: its model, optimizer and precision, and how it goes about its steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import cos, pi
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.diagnosis.case import Case

OPTIMIZERS = ("Adam", "AdamW", "SGD")
PRECISIONS = ("fp32", "bf16", "fp16")
WARM_UP, PERIOD = 20, 100


@dataclass(frozen=True)
class Setting:
    """One loop. `schedule` is a key of SCHEDULES; `guarded` loops decline what is not finite by themselves.

    `accumulate` micro-batches make one step; an `epoch` is so many batches that come again, 0 a stream that never
    repeats; `curriculum` says that the data get harder in stages, and that the loop records the stage.
    """

    model: str
    optimizer: str
    precision: str
    batch: int = 32
    max_norm: float | None = 1.0
    schedule: str = "constant"
    guarded: bool = False
    accumulate: int = 1
    epoch: int = 0
    curriculum: bool = False
    init_scale: float = 2.0**16
    growth_interval: int = 2000
    tells_batch: bool = True
    tells_inputs: bool = True


@dataclass(frozen=True)
class Plan:
    """A setting, how many rows to record, and the row at which a fault begins."""

    setting: Setting
    rows: int
    at: int


def cosine(step: int, rows: int) -> float:
    """From the full rate down to a tenth of it."""
    return 0.55 + 0.45 * cos(pi * min(1.0, step / rows))


def warm_up_cosine(step: int, rows: int) -> float:
    """The same after a warm-up from nothing."""
    return min(1.0, (step + 1) / WARM_UP) * cosine(step, rows)


def restarts(step: int, rows: int) -> float:
    """Down to a hundredth and up again at once, every PERIOD steps."""
    return 0.505 + 0.495 * cos(pi * (step % PERIOD) / PERIOD)


SCHEDULES = {"cosine": cosine, "warm_up_cosine": warm_up_cosine, "restarts": restarts}


def plan(case: Case, seed: int) -> Plan:
    """What a seed chooses. Seeds 2k and 2k + 1 share a setting, so that even and odd ones are of the same mix.

    Faults begin early, in the middle (twice as often) and late.
    """
    shared, own = Random(f"{case.name}:{seed // 2}"), Random(f"{case.name}:{seed}")
    setting = replace(_combination(case, seed // 2), max_norm=shared.choice((None, 1.0)), batch=shared.choice((16, 32)))
    setting = replace(setting, schedule=shared.choice(("constant", "warm_up_cosine")), guarded=shared.random() < 0.5)
    setting = replace(setting, **case.settings)
    rows = own.randint(*case.rows)
    last = rows - case.aftermath
    places = (
        own.randint(case.earliest, case.earliest + 30),
        own.randint(case.earliest, last),
        own.randint(case.earliest, last),
        last - own.randint(0, 15),
    )
    at = min(last, max(case.earliest, places[seed // 2 % 4]))
    return Plan(setting, rows, 0 if case.since_start else at)


def _combination(case: Case, index: int) -> Setting:
    """Each fitting combination of model, optimizer and precision in turn, in an order of the case's own."""
    every = [Setting(*names) for names in product(("mlp", "cnn", "char"), OPTIMIZERS, PRECISIONS)]
    fitting = [setting for setting in every if case.fits(setting)]
    Random(case.name).shuffle(fitting)
    return fitting[index % len(fitting)]
