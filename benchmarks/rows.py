"""Rows as a training gives them: some are really recorded, and as many as are asked for are made after them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import cos, pi
from pathlib import Path
from typing import Any

import numpy as np
import torch

from recorder import FlightRecorder
from recorder.store import read_run

RECORDED = 2_000
# Measured anew in each row, so that all digits of theirs differ from those of the row they are made after.
_MEASURED = ("grad_norm", "clip_coef", "top_group_share", "param_norm", "update_norm", "update_ratio", "update_cosine")

Row = dict[str, Any]


def recorded_rows(folder: Path, count: int = RECORDED) -> list[Row]:
    """What the always-on tier keeps of a small regression, clipped and under a schedule."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    groups = [{"params": model[0].parameters()}, {"params": model[2].parameters()}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=count + 1)
    with FlightRecorder(folder, model, optimizer, scheduler=scheduler, max_norm=1.0, deep_every=0) as recorder:
        for step in range(count):
            x = torch.randn(32, 16)
            with recorder.transition(batch_id=step) as t:
                optimizer.zero_grad()
                loss = (model(x) - x.sin().sum(1, keepdim=True)).square().mean()
                t.observe_loss(loss)
                loss.backward()
                t.clip_grad_norm_()
                optimizer.step()
                scheduler.step()
    table = read_run(folder).table
    return table.select([name for name in table.column_names if table[name].null_count < count]).to_pylist()


def many_rows(recorded: list[Row], count: int) -> Iterator[Row]:
    """So many rows: the recorded ones over and over, with clocks that go on and other digits in what is measured."""
    noise = random.Random(1)
    time_ns = recorded[0]["time_ns"]
    period = (recorded[-1]["time_ns"] - time_ns) / len(recorded)
    for number in range(count):
        row = dict(recorded[number % len(recorded)])
        time_ns += int(period * noise.uniform(0.9, 1.3))
        row.update(row=number, step=number, time_ns=time_ns, batch_id=str(number))
        row.update(attempted_n=number + 1, executed_n=number + 1, scheduled_n=number + 1)
        for name in _MEASURED:
            if row[name] not in (None, 1.0):
                row[name] *= noise.uniform(0.99, 1.01)
        row["loss"] = float(np.float32(row["loss"] * noise.uniform(0.99, 1.01)))  # as a model gives it
        row["lr"] = 1e-2 * (1 + cos(pi * number / count)) / 2
        yield row
