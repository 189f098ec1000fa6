"""The recorded training loop, and the parts of it that a fault replaces."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor
from torch.optim.lr_scheduler import LambdaLR

from benchmarks.diagnosis.models import MODELS, Batch
from benchmarks.diagnosis.setting import SCHEDULES, Plan
from recorder import FlightRecorder
from recorder.transition import Transition

if TYPE_CHECKING:
    from benchmarks.diagnosis.case import Case

AUTOCAST = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
STAGE, STAGES = 150, 4


class Loop:
    """Everything a training loop holds. `row` is the transition it is in, `at` the row at which a fault begins.

    `onset` is where the fault began to show, if the fault's own code had to find out; None where the plan says it.
    `notes` are numbers that a fault keeps from row to row.
    """

    def __init__(self, directory: Path, plan: Plan, seed: int, rank: int = 0) -> None:
        self.directory, self.setting, self.rows, self.at, self.rank = directory, plan.setting, plan.rows, plan.at, rank
        torch.manual_seed(seed)
        self.task = MODELS[plan.setting.model]()
        self.model = self.task.model
        self.row, self.seed = 0, seed
        self.onset: int | None = None
        self.notes: dict[str, float] = {}
        self.dice = Generator().manual_seed(seed + 1)
        self.optimizer, self.scheduler, self.scaler = self._make()
        self.rewind()
        self.recorder = self._recorder(resume=False)

    @property
    def is_here(self) -> bool:
        """Whether this is the row at which the fault begins."""
        return self.row == self.at

    @property
    def since(self) -> bool:
        """Whether the fault has begun."""
        return self.row >= self.at

    @property
    def steps_now(self) -> bool:
        """Whether this row is the last micro-batch of its step."""
        return (self.row + 1) % self.setting.accumulate == 0

    def rewind(self) -> None:
        """Start the data from the first batch."""
        self.place, self.draws = 0, Generator().manual_seed(self.seed + 1000 * self.rank)
        self.dataset = [self._draw(1.0) for _ in range(self.setting.epoch)]

    def next_batch(self) -> tuple[int, Batch]:
        """The batch of this row, and what the loop calls it."""
        place = self.place
        self.place += 1
        if self.dataset:
            return place % len(self.dataset), self.dataset[place % len(self.dataset)]
        return place, self._draw(1.0 + 0.25 * self.stage)

    @property
    def stage(self) -> int:
        """How far the curriculum has come."""
        return min(STAGES, self.row // STAGE) if self.setting.curriculum else 0

    def losses(self, x: Tensor, y: Tensor) -> Tensor:
        """The unreduced losses of a batch, in the precision of the setting."""
        dtype = AUTOCAST[self.setting.precision]
        with torch.autocast("cpu", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            out = self.model(x)
        return self.task.losses(out, y)

    def resume(self, without: Sequence[str] = (), tells: bool = True) -> None:
        """Go on in a new segment as a new process would, without some parts of the state."""
        parts = ["model", "optimizer", "scheduler", "scaler", "rng", "sampler"]
        name = f"row-{self.row - 1}"
        self.recorder.checkpoint(name)
        self.recorder.close()
        old = {part: getattr(self, part) for part in parts[1:4]}
        self.optimizer, self.scheduler, self.scaler = self._make()
        for part, before in old.items():
            if part not in without and before is not None:
                getattr(self, part).load_state_dict(deepcopy(before.state_dict()))
        if self.scheduler is not None:
            for group, rate in zip(self.optimizer.param_groups, self.scheduler.get_last_lr(), strict=True):
                group["lr"] = rate
        if "sampler" in without:
            self.rewind()
        self.recorder = self._recorder(resume=True)
        if tells:
            self.recorder.resumed(name, restored=[part for part in parts if part not in without])

    def _draw(self, hardness: float) -> Batch:
        return self.task.draw(self.draws, self.setting.batch, hardness)

    def _make(self) -> tuple[torch.optim.Optimizer, LambdaLR | None, torch.amp.GradScaler]:
        setting = self.setting
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        more = {"momentum": 0.9} if setting.optimizer == "SGD" else {}
        rate = self.task.rates[setting.optimizer]
        optimizer = getattr(torch.optim, setting.optimizer)(parameters, lr=rate, **more)
        schedule = SCHEDULES.get(setting.schedule)
        steps = self.rows // setting.accumulate
        scheduler = LambdaLR(optimizer, lambda step: schedule(step, steps)) if schedule else None
        scaler = torch.amp.GradScaler(
            "cpu", setting.init_scale, growth_interval=setting.growth_interval, enabled=setting.precision == "fp16"
        )
        return optimizer, scheduler, scaler

    def _recorder(self, resume: bool) -> FlightRecorder:
        return FlightRecorder(
            self.directory,
            self.model,
            self.optimizer,
            scaler=self.scaler,
            scheduler=self.scheduler,
            max_norm=self.setting.max_norm,
            resume=resume,
            deep_every=50,
            rank=self.rank,
            config={"precision": self.setting.precision, "accumulate": self.setting.accumulate},
        )


def nothing(loop: Loop) -> None:
    """What a sound loop does before a row."""


def number(loop: Loop) -> int | None:
    """The number of its step that the loop tells; None leaves the counting to the recorder."""


def unchanged(loop: Loop, batch: Batch) -> Batch:
    """What a sound loop makes of a batch."""
    return batch


def clear(loop: Loop) -> None:
    """Forget the gradients of the step before."""
    loop.optimizer.zero_grad()


def forward(loop: Loop, batch: Batch) -> Tensor:
    """The loss of a batch, 0-d."""
    return loop.losses(*batch).mean()


def log(loop: Loop, t: Transition, loss: Tensor) -> None:
    """Tell the recorder the loss that is differentiated."""
    t.observe_loss(loss, count=loop.setting.batch)


def step(loop: Loop, t: Transition, loss: Tensor) -> None:
    """Backward, clip, step, update, schedule, in their order."""
    loop.scaler.scale(loss / loop.setting.accumulate).backward()
    if not loop.steps_now:
        return
    t.clip_grad_norm_()
    advance(loop, t)


def advance(loop: Loop, t: Transition) -> None:
    """The step itself, unless a guarded loop declines it, and what follows it."""
    if loop.scaler.is_enabled() or not loop.setting.guarded or t.should_step:
        loop.scaler.step(loop.optimizer)
        loop.scaler.update()
    if t.executed and loop.scheduler is not None:
        loop.scheduler.step()


def train(loop: Loop, case: Case) -> None:
    """Run the loop with the parts that the case puts in place of the sound ones."""
    for row in range(loop.rows):
        loop.row = row
        case.before(loop)
        place, batch = loop.next_batch()
        batch = case.batch(loop, batch)
        batch_id = place if loop.setting.tells_batch else None
        with loop.recorder.transition(batch_id, step=case.number(loop), accumulating=not loop.steps_now) as t:
            if loop.row % loop.setting.accumulate == 0:
                case.clear(loop)
            if loop.setting.tells_inputs and batch[0].is_floating_point():
                t.observe_inputs(batch[0])
            if loop.setting.curriculum:
                t.record(stage=loop.stage)
            loss = case.forward(loop, batch)
            case.log(loop, t, loss)
            case.step(loop, t, loss)
    loop.recorder.close()
