"""A run directory of any length, in the parts that the recorder would have written: what the window is measured on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from recorder.store.folder import part_path
from recorder.store.parts import write_part
from recorder.store.table import ROLL_ROWS


def write_long_run(path: Path, rows: int) -> Path:
    """A training of so many rows with three skipped steps and a spike of the loss in its middle."""
    random, steps = np.random.default_rng(3), np.arange(rows)
    middle = rows // 2
    executed = np.ones(rows, dtype=bool)
    executed[middle + np.array([7, 8, 10])] = False
    loss = 2.2 + 1.6 * np.exp(-steps / (rows / 8)) + random.normal(size=rows) * 0.035
    loss[middle + 1 : middle + 40] += 1.0
    norm = 0.3 * np.exp(random.normal(size=rows) * 0.15)
    norm[~executed] = np.inf

    def where_executed(values: np.ndarray) -> pa.Array:
        return pa.array(values, mask=~executed)

    table = pa.table(
        {
            "row": steps,
            "segment": np.zeros(rows, dtype=np.int32),
            "step": steps,
            "micro_step": np.zeros(rows, dtype=np.int32),
            "optimizer": pa.repeat("optimizer", rows),
            "precision": pa.repeat("bf16", rows),
            "time_ns": 10**18 + steps * 50_000_000 + random.integers(0, 10**6, rows),
            "loss": loss,
            "grad_norm": norm,
            "max_norm": np.ones(rows),
            "clip_coef": where_executed(np.minimum(1.0, 1.0 / (norm + 1e-6))),
            "loss_scale": np.full(rows, 65536.0),
            "attempted": np.ones(rows, dtype=bool),
            "executed": executed,
            "moved": where_executed(np.ones(rows, dtype=bool)),
            "scheduled": np.ones(rows, dtype=np.int32),
            "attempted_n": steps + 1,
            "executed_n": np.cumsum(executed),
            "scheduled_n": steps + 1,
            "lr": np.full(rows, 3e-4),
            "update_ratio": where_executed(1e-3 * np.exp(random.normal(size=rows) * 0.1)),
            "update_cosine": where_executed(0.6 + random.normal(size=rows) * 0.05),
        }
    )
    folder = path / "steps" / "rank=0"
    folder.mkdir(parents=True)
    for number, first in enumerate(range(0, rows, ROLL_ROWS)):
        write_part(part_path(folder, number), table.slice(first, ROLL_ROWS), np.zeros(0, dtype=np.int64))
    (path / "run.json").write_text(json.dumps({"schema_version": 1, "device": "cpu"}))
    (path / "events.jsonl").write_text("")
    return path
