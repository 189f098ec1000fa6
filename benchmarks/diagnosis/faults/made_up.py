"""Made-up series: what no loop here can record. Nothing trains.

The published incident of K2 (K2-V2 technical report, section 3.5.2: consecutive bad iterations from 464,821 on, losses
up to about 8.71, and an automatic return to the checkpoint of step 464,500), and a log that two writers write to.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.diagnosis.case import Case, Recording
from benchmarks.diagnosis.faults.data import SPIKE
from benchmarks.diagnosis.setting import Plan, Setting
from recorder.store import RunWriter

START, ONSET, CHECKPOINT, BAD, WORST = 463_800, 464_821, 464_500, 40, 8.71
EVERY, TWICE = 500, 30


def record_incident(case: Case, chosen: Plan, seed: int, directory: Path) -> Recording:
    """A loss around 1.7 that leaves at the onset, and a second segment from the checkpoint on.

    A case that names a rule holds norm, clipping and update as well: without them no rule can be told.
    """
    noise = np.random.default_rng(seed)
    has_update = case.rule is not None
    manifest = {"optimizers": {"optimizer": {"class": "AdamW"}}}
    writer = RunWriter.create(directory, manifest)
    steps = np.arange(START, ONSET + BAD)
    losses = 1.7 * np.exp(0.03 * noise.standard_normal(len(steps)))
    climb = np.minimum(1.0, (np.arange(BAD) + 1) / 4) * np.exp(-0.05 * noise.exponential(1.0, BAD))
    losses[-BAD:] = 1.7 + (WORST - 1.7) * climb / climb.max()
    for row, (step, loss) in enumerate(zip(steps.tolist(), losses.tolist(), strict=True)):
        if step % EVERY == 0:
            writer.event("checkpoint", row=row - 1, name=f"step-{step}")
        writer.append({**_row(row, step, loss, noise, has_update), "segment": writer.segment})
    writer.close()
    writer = RunWriter.create(directory, manifest, resume=True)
    everything = ["model", "optimizer", "scheduler", "rng", "sampler"]
    first = len(steps)
    writer.event("resume", row=first - 1, from_checkpoint=f"step-{CHECKPOINT}", restored=everything)
    for row, step in enumerate(range(CHECKPOINT, ONSET + 200), start=first):
        loss = 1.7 * float(np.exp(0.03 * noise.standard_normal()))
        writer.append({**_row(row, step, loss, noise, has_update), "segment": writer.segment})
    writer.close()
    setting = Setting("made up", "AdamW", "bf16", max_norm=1.0 if has_update else None)
    return Recording(seed, setting, first + ONSET + 200 - CHECKPOINT, ONSET - START)


def record_twice(case: Case, chosen: Plan, seed: int, directory: Path) -> Recording:
    """A healthy series of which some steps are written twice."""
    noise = np.random.default_rng(seed)
    writer = RunWriter.create(directory, {"optimizers": {"optimizer": {"class": "AdamW"}}})
    twice = range(chosen.at, chosen.at + TWICE)
    steps = [step for step in range(chosen.rows) for _ in range(2 if step in twice else 1)]
    for row, step in enumerate(steps):
        loss = 1.7 * float(np.exp(0.03 * noise.standard_normal()))
        writer.append({**_row(row, step, loss, noise, has_update=True), "segment": writer.segment})
    writer.close()
    return Recording(seed, Setting("made up", "AdamW", "bf16"), len(steps), None)


def _row(row: int, step: int, loss: float, noise: np.random.Generator, has_update: bool) -> Mapping[str, Any]:
    told = {"row": row, "step": step, "micro_step": 0, "optimizer": "optimizer", "loss": loss}
    if not has_update:
        return told
    ratio, norm = (float(np.exp(0.2 * noise.standard_normal())) for _ in range(2))
    return told | {
        "grad_norm": 0.1 * norm,
        "grad_norm_source": "recorder",
        "grad_norm_is_unscaled": True,
        "grad_nonfinite_params": 0,
        "max_norm": 1.0,
        "clip_coef": 1.0,
        "attempted": True,
        "executed": True,
        "moved": True,
        "lr": 1.5e-4,
        "update_norm": 1e-2 * ratio,
        "update_ratio": 1e-4 * ratio,
        "update_cosine": float(0.3 + 0.05 * noise.standard_normal()),
        "update_kind": "sampled",
    }


# It is held out of its band, and the last checkpoint before it is the one that they went back to.
NAMES = ("persistent", f"step-{CHECKPOINT}")
SHAPE = "the onset at step 464,821, losses up to 8.71, back to the checkpoint of 464,500"

FAULTS: tuple[Case, ...] = (
    Case(
        "k2_incident",
        f"the published K2 incident: {SHAPE}",
        rule=SPIKE,
        signals=("loss",),
        names=NAMES,
        record=record_incident,
    ),
    Case(
        "k2_incident_loss_alone",
        "as k2_incident, in a log that holds nothing but the loss",
        signals=("loss",),
        unknown={SPIKE: ("executed", "grad_norm", "update_ratio")},
        names=NAMES,
        record=record_incident,
    ),
    Case(
        "duplicate_steps",
        "two writers wrote the same steps for a while",
        incident="none",
        checks=("duplicate_steps",),
        record=record_twice,
    ),
)
