"""Runs made by hand: what a recorder would have written, and what a diagnosis would have said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from recorder.schema import COLUMNS, STEPS
from spikeview.analysis.baseline import Baseline
from spikeview.analysis.incident import Incident, Lead, Observation, SignalExtent
from spikeview.rules.diagnosis import Diagnosed, Diagnosis, View
from spikeview.rules.finding import CheckResult, Finding, Outcome, Verdict
from spikeview.run import Run

MANIFEST = {"schema_version": 1, "device": "cuda"}


def run_of(columns: Mapping[str, Any], path: str = "runs/made", manifest: Mapping[str, Any] = MANIFEST) -> Run:
    """A run of these columns, with row, segment, step and optimizer filled in where they are not given."""
    rows = len(next(iter(columns.values())))
    known = {
        "row": np.arange(rows),
        "segment": np.zeros(rows, dtype=np.int32),
        "step": np.arange(rows),
        "micro_step": np.zeros(rows, dtype=np.int32),
        "optimizer": pa.array(["optimizer"] * rows).dictionary_encode().cast("string"),
        **columns,
    }
    ordered = [column.name for column in STEPS if column.name in known]
    ordered += [name for name in known if name not in COLUMNS]
    arrays = [
        known[name]
        if isinstance(known[name], pa.Array)
        else pa.array(known[name], COLUMNS[name].arrow if name in COLUMNS else None)
        for name in ordered
    ]
    return Run(path, pa.table(dict(zip(ordered, arrays, strict=True))), dict(manifest))


def baseline_of(run: Run, name: str, rows: int = 64) -> Baseline:
    """The median and MAD of the first rows, everywhere: enough to look at."""
    values = run.values(name).astype(float)
    healthy = values[:rows][np.isfinite(values[:rows])]
    center = float(np.median(healthy)) if len(healthy) else np.nan
    spread = max(float(np.median(np.abs(healthy - center))), abs(center) * 0.01, 1e-9) if len(healthy) else np.nan
    full = np.full(len(run), center)
    deviation = np.where(np.isfinite(values), (values - center) / spread, np.nan)
    return Baseline(full, full - spread, full + spread, deviation)


SIGNALS = ("loss", "grad_norm", "update_ratio", "update_cosine")


def view_of(run: Run) -> View:
    return View("optimizer", run, {name: baseline_of(run, name) for name in SIGNALS if run.recorded(name).any()})


FINDINGS = (
    Finding(
        "ordinary_grad_abnormal_update",
        "Ordinary gradient, abnormal update ratio or cosine",
        Verdict.MATCHED,
        "cos -0.38 (base 0.62 ± 0.07), 3 rows before the loss",
        "optimizer state, a learning-rate change, a checkpoint resume",
        (8219, 8220),
    ),
    Finding(
        "large_norm_tiny_coef",
        "Large pre-clip norm, tiny clip coefficient",
        Verdict.MATCHED,
        "norm 15.9, coefficient 0.063, lm_head 71 %",
        "the group that contributed the norm; an anomalous batch",
        (8221,),
    ),
    Finding(
        "attempted_not_executed",
        "Attempted, never executed",
        Verdict.MATCHED,
        "rows 8226, 8227, 8229",
        "AMP skipping on non-finite gradients",
    ),
    Finding(
        "loss_spike_clean_transition", "Loss spike, clean transition", Verdict.CANNOT_TELL, "", "", (), ("batch_id",)
    ),
    Finding("loss_nonfinite", "Loss non-finite", Verdict.RULED_OUT, "finite on all rows", "inputs"),
    Finding("no_attempt", "No optimizer attempt", Verdict.RULED_OUT, "attempted on all rows", ""),
    Finding("executed_not_moved", "Executed, nothing moved", Verdict.RULED_OUT, "ratio ≥ 1e-3", ""),
)
CHECKS = (
    CheckResult("skip_rate", "skip rate", Outcome.PASSED, "0.03 % of attempts"),
    CheckResult("schedule_drift", "schedule drift", Outcome.FAILED, "3 ahead of executed", (8226,)),
    CheckResult("loss_denominator_changed", "loss denominator", Outcome.CANNOT_TELL, "loss_count was not recorded"),
    CheckResult("autocast_device_mismatch", "autocast device", Outcome.NOT_APPLICABLE, "no autocast"),
)


def incident_at(
    view: View, position: int, last: int, signal: str = "loss", severity: str = "critical", own: bool = False
) -> Diagnosed:
    """An incident whose first bad observation is one signal at a position; `own` accuses that row's own update."""
    value = float(view.run.values(signal)[position])
    deviation = None if signal not in view.baselines else float(view.baselines[signal].deviation[position])
    reason = "outlier" if deviation is not None and np.isfinite(deviation) else "nonfinite"
    first = Observation(position, signal, value, reason, deviation if reason == "outlier" else None)
    others = tuple(
        Observation(position + 1, name, float(view.run.values(name)[position + 1]), "outlier", 9.0)
        for name in ("loss", "grad_norm")
        if name != signal
    )
    lead = () if signal == "loss" else (Lead(signal, position, 1),)
    extent = {each.signal: SignalExtent(each.position, 1, each) for each in (first, *others)}
    incident = Incident((first, *others), position - 1 if position else None, last, severity, "transient", lead, extent)
    executed = np.flatnonzero(view.run.values("executed")[:position])
    before = int(executed[-1]) if len(executed) else None
    return Diagnosed(incident, view, position if own else before, FINDINGS)


def drawn_run(rows: int = 12_480, path: str = "runs/gpt-350m") -> Run:
    """A long run with the incident of a spike at row 8,219: cosine first, then norm and loss, then skips."""
    random = np.random.default_rng(7)
    at, steps = rows * 8219 // 12_480, np.arange(rows)
    loss = 2.2 + 1.6 * np.exp(-steps / (rows / 8)) + random.normal(size=rows) * 0.035
    norm = 0.3 * np.exp(random.normal(size=rows) * 0.15)
    cosine = 0.62 + random.normal(size=rows) * 0.05
    ratio = 1.1e-3 * np.exp(random.normal(size=rows) * 0.12)
    after = steps[at + 1 :] - at
    loss[at + 1 :] += np.exp(-after / 40) * 0.95
    norm[at : at + 24] = 0.3 + 20 * np.exp(-np.arange(24) / 6.0) * np.linspace(0.03, 1, 24)
    cosine[at : at + 9] = [-0.38, -0.33, -0.28, -0.1, 0.1, 0.2, 0.4, 0.5, 0.6]
    ratio[at : at + 5] = 3.4e-3
    skipped = [at + 7, at + 8, at + 10]
    norm[skipped] = np.inf
    executed = np.ones(rows, dtype=bool)
    executed[skipped] = False
    coefficient = np.minimum(1.0, 1.0 / (norm + 1e-6))

    def where_executed(values: np.ndarray) -> pa.Array:
        return pa.array(values, mask=~executed)

    return run_of(
        {
            "loss": loss,
            "batch_id": [f"b-{row}" for row in range(rows)],
            "precision": pa.array(["fp16"] * rows),
            "grad_norm": norm,
            "top_group": pa.array(["lm_head"] * rows),
            "top_group_share": np.where(np.abs(steps - at) < 3, 0.71, 0.34 + random.normal(size=rows) * 0.03),
            "max_norm": np.ones(rows),
            "clip_coef": pa.array(coefficient, mask=np.isinf(norm)),
            "loss_scale": np.where(steps > at + 7, 32768.0, 65536.0),
            "attempted": np.ones(rows, dtype=bool),
            "executed": executed,
            "moved": where_executed(np.ones(rows, dtype=bool)),
            "scheduled": np.ones(rows, dtype=np.int32),
            "attempted_n": steps + 1,
            "executed_n": np.cumsum(executed),
            "scheduled_n": steps + 1,
            "skip_reason": pa.array([None if ok else "amp_overflow" for ok in executed]),
            "lr": np.full(rows, 2.98e-4),
            "update_ratio": where_executed(ratio),
            "update_cosine": where_executed(cosine),
            "update_kind": pa.array([("sampled" if ok else None) for ok in executed]),
            "segment": (steps >= rows // 2).astype(np.int32),
        },
        path,
    )


def drawn(rows: int = 12_480) -> Diagnosis:
    run = drawn_run(rows)
    view, at = view_of(run), rows * 8219 // 12_480
    incidents = (
        incident_at(view, rows // 10, rows // 10 + 5, "grad_norm"),
        incident_at(view, at, at + 48, "update_cosine", own=True),
        incident_at(view, rows * 9 // 10, rows * 9 // 10, "loss", "warning"),
    )
    return Diagnosis(run, (view,), incidents, CHECKS)


def clock_drift() -> Diagnosis:
    """The published six rows: two overflows, a scheduler that went on."""
    norm = [2.835, 7.555, np.inf, np.inf, 6.435, 5.708]
    executed = np.isfinite(norm)
    run = run_of(
        {
            "loss": [3.1823, 7.9891, 4.1737, 4.1906, 5.7833, 5.6942],
            "grad_norm": norm,
            "max_norm": [1.0] * 6,
            "clip_coef": pa.array([0.3527, 0.1324, None, None, 0.1554, 0.1752]),
            "loss_scale": [65536.0, 65536.0, 65536.0, 32768.0, 16384.0, 16384.0],
            "attempted": [True] * 6,
            "executed": executed,
            "moved": pa.array([True, True, None, None, True, True]),
            "scheduled": [1] * 6,
            "attempted_n": [1, 2, 3, 4, 5, 6],
            "executed_n": [1, 2, 2, 2, 3, 4],
            "scheduled_n": [1, 2, 3, 4, 5, 6],
            "skip_reason": pa.array([None, None, "amp_overflow", "amp_overflow", None, None]),
            "lr": [0.05, 0.0475, 0.04512, 0.04287, 0.04073, 0.03869],
            "update_ratio": pa.array([0.0777, 0.143, None, None, 0.168, 0.219]),
            "update_cosine": pa.array([1.0, 0.983, None, None, 0.842, 0.965]),
            "update_kind": pa.array(["exact", "exact", None, None, "exact", "exact"]),
        },
        "runs/clock_drift",
    )
    view = view_of(run)
    return Diagnosis(run, (view,), (incident_at(view, 2, 3, "grad_norm"),), CHECKS)


def explosion() -> Diagnosis:
    """Twelve rows whose loss leaves at row 6 by ten orders of magnitude; few columns were recorded."""
    loss = [0.0625, 0.0577, 0.0532, 0.0491, 0.0453, 0.0417, 3.785e8, 6.02e15, 5.55e15, 5.1e15, np.nan, 4.7e15]
    run = run_of(
        {
            "loss": loss,
            "grad_norm": [0.5, 0.48, 0.461, 0.443, 0.425, 0.408, 3.892e9, 1.55e8, 0.0, 1.43e8, np.nan, 1.3e8],
            "attempted": [True] * 12,
            "executed": [True] * 12,
            "attempted_n": np.arange(1, 13),
            "executed_n": np.arange(1, 13),
        },
        "runs/explosion",
    )
    view = view_of(run)
    return Diagnosis(run, (view,), (incident_at(view, 6, 11, "loss"),), CHECKS)


def healthy(rows: int = 400) -> Diagnosis:
    run = run_of(
        {
            "loss": np.linspace(2.0, 1.0, rows),
            "grad_norm": np.linspace(0.5, 0.4, rows),
            "executed": np.ones(rows, dtype=bool),
            "attempted": np.ones(rows, dtype=bool),
        },
        "runs/healthy",
    )
    return Diagnosis(run, (view_of(run),), (), CHECKS[:1])
