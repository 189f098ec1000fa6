"""Several ranks of which one has bad data."""

from __future__ import annotations

from pathlib import Path

import torch

from benchmarks.diagnosis.case import Case, Recording
from benchmarks.diagnosis.faults.data import LEARNED, NORM, SPIKE, mislabelled
from benchmarks.diagnosis.loop import Loop, advance, clear, forward, log
from benchmarks.diagnosis.models import Batch
from benchmarks.diagnosis.setting import Plan

WORLD = 3
BAD_ROWS = 4


def record(case: Case, chosen: Plan, seed: int, directory: Path) -> Recording:
    """Three ranks of one model in step, with data of their own and their gradients averaged, as DDP would."""
    loops = [Loop(directory, chosen, seed, rank) for rank in range(WORLD)]
    bad = seed % WORLD
    for row in range(chosen.rows):
        transitions = []
        for loop in loops:
            loop.row = row
            batch_id, batch = loop.next_batch()
            t = loop.recorder.begin(batch_id)
            transitions.append(t)
            clear(loop)
            loss = forward(loop, _corrupted(loop, batch) if loop.rank == bad else batch)
            log(loop, t, loss)
            loop.scaler.scale(loss).backward()
        for copies in zip(*(loop.model.parameters() for loop in loops), strict=True):
            mean = torch.stack([p.grad for p in copies]).mean(0)
            for p in copies:
                p.grad = mean.clone()
        for loop, t in zip(loops, transitions, strict=True):
            t.clip_grad_norm_()
            advance(loop, t)
            loop.recorder.end()
    for loop in loops:
        loop.recorder.close()
    return Recording(seed, chosen.setting, chosen.rows, chosen.at, rank=bad)


def _corrupted(loop: Loop, batch: Batch) -> Batch:
    return mislabelled(loop, batch) if loop.at <= loop.row < loop.at + BAD_ROWS else batch


FAULTS: tuple[Case, ...] = (
    Case(
        "one_rank_corrupted",
        "the data of one rank were mislabelled for four rows",
        rule=SPIKE,
        signals=("loss",),
        checks=("rank_outlier",),
        perhaps=(NORM,),
        # one precision: gradients that overflow on one rank would be skipped on all
        fits=lambda setting: setting.precision != "fp16",
        settings={"guarded": False},
        earliest=LEARNED,
        aftermath=20,
        rows=(200, 280),
        record=record,
    ),
)
