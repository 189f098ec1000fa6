"""Runs of given columns, and healthy series to put a fault into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from recorder.schema import COLUMNS
from spikeview.run import Run

SCHEDULED = {"optimizers": {"optimizer": {"class": "AdamW", "scheduler": {"class": "StepLR"}}}}


def run_of(columns: Mapping[str, Any], manifest: Mapping[str, Any] | None = None, events: Any = ()) -> Run:
    """A run of these columns alone; None in a column is null."""
    types = {name: COLUMNS[name].arrow if name in COLUMNS else None for name in columns}
    table = pa.table({name: pa.array(list(values), types[name]) for name, values in columns.items()})
    return Run("/runs/made", table, manifest or {}, events)


def healthy(rows: int, seed: int = 0) -> dict[str, list[Any]]:
    """Every column the rules ask for, of a run with a falling loss and nothing wrong in it."""
    noise = np.random.default_rng(seed)
    ratio = 1e-3 * np.exp(0.1 * noise.standard_normal(rows))
    return {
        "row": list(range(rows)),
        "segment": [0] * rows,
        "step": list(range(rows)),
        "micro_step": [0] * rows,
        "optimizer": ["optimizer"] * rows,
        "batch_id": [f"b-{row}" for row in range(rows)],
        "loss": list(2.5 * np.exp(-np.arange(rows) / 200 + 0.05 * noise.standard_normal(rows))),
        "grad_norm": list(np.exp(0.3 * noise.standard_normal(rows))),
        "grad_norm_source": ["recorder"] * rows,
        "grad_norm_is_unscaled": [True] * rows,
        "grad_nonfinite_params": [0] * rows,
        "nonfinite_buffers": [0] * rows,
        "max_norm": [1.0] * rows,
        "clip_coef": [1.0] * rows,
        "loss_scale": [None] * rows,
        "attempted": [True] * rows,
        "executed": [True] * rows,
        "moved": [True] * rows,
        "scheduled": [1] * rows,
        "skip_reason": [None] * rows,
        "lr": [1e-3] * rows,
        "update_norm": list(ratio * 10),
        "update_ratio": list(ratio),
        "update_cosine": list(0.6 + 0.05 * noise.standard_normal(rows)),
    }


def skip(columns: dict[str, list[Any]], row: int, reason: str = "amp_overflow") -> None:
    """Make one row an attempt that a scaler did not execute."""
    columns["executed"][row] = False
    columns["grad_norm"][row] = float("inf")
    columns["grad_nonfinite_params"][row] = 2
    columns["skip_reason"][row] = reason
    for name in ("moved", "update_norm", "update_ratio", "update_cosine", "clip_coef"):
        columns[name][row] = None
