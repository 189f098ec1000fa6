"""The same loop under what people use instead: a CSV, TensorBoard, W&B offline, trainscope. Each where it is installed.

All but trainscope log four numbers a step (loss, norm, learning rate, step), which is less than the recorder keeps.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from benchmarks.models import Workload

Step = Callable[[], None]
Make = Callable[[Workload, Path], Step]


def _logged(work: Workload, log: Callable[[int, dict[str, float]], None]) -> Step:
    count = 0

    def step() -> None:
        nonlocal count
        work.optimizer.zero_grad()
        loss = work.loss()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(work.model.parameters(), 1.0)
        work.optimizer.step()
        log(count, {"loss": loss.item(), "grad_norm": norm.item(), "lr": work.optimizer.param_groups[0]["lr"]})
        count += 1

    return step


def csv_file(work: Workload, folder: Path) -> Step:
    """One line a step, flushed after every one."""
    folder.mkdir(parents=True)
    file = (folder / "log.csv").open("w", newline="")
    writer = csv.writer(file)

    def log(step: int, values: dict[str, float]) -> None:
        writer.writerow([step, *values.values()])
        file.flush()

    return _logged(work, log)


def tensorboard(work: Workload, folder: Path) -> Step:
    """`add_scalar` for each number."""
    writer = import_module("torch.utils.tensorboard").SummaryWriter(folder)

    def log(step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return _logged(work, log)


def wandb_offline(work: Workload, folder: Path) -> Step:
    """`run.log`, offline."""
    folder.mkdir(parents=True)
    os.environ["WANDB_SILENT"] = "true"
    run: Any = import_module("wandb").init(mode="offline", dir=folder, project="overhead", reinit="create_new")
    return _logged(work, lambda step, values: run.log(values, step=step))


def trainscope(work: Workload, folder: Path) -> Step:
    """With its default settings, called between backward and step as it asks for."""
    module = import_module("trainscope")
    config = module.TrainScopeConfig(run_dir=str(folder), run_name="run")
    scope = module.TrainScope(work.model, work.optimizer, config)
    scope.attach()

    def step() -> None:
        work.optimizer.zero_grad()
        loss = work.loss()
        loss.backward()
        scope.step(loss.item())
        torch.nn.utils.clip_grad_norm_(work.model.parameters(), 1.0)
        work.optimizer.step()

    return step


def installed() -> dict[str, Make]:
    """Those of them that can be imported here."""
    needs = {"tensorboard": (tensorboard, "tensorboard"), "wandb": (wandb_offline, "wandb")}
    needs["trainscope"] = (trainscope, "trainscope")
    found = {name: make for name, (make, module) in needs.items() if find_spec(module)}
    return {"csv": csv_file, **found}
