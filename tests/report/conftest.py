"""Diagnoses made by hand, small enough to read: each row and each verdict is written down here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recorder.schema import COLUMNS
from spikeview.analysis.baseline import Baseline
from spikeview.analysis.incident import Incident, Lead, Observation, SignalExtent
from spikeview.report import figures
from spikeview.rules.checks import CHECKS
from spikeview.rules.diagnosis import Diagnosed, Diagnosis, View
from spikeview.rules.finding import CheckResult, Finding, Outcome, Verdict
from spikeview.run import Floats, Run

INF, NAN = float("inf"), float("nan")
Columns = Mapping[str, Sequence[Any]]


@contextmanager
def sketched() -> Iterator[None]:
    """Figures are empty, for what does not look at them: to draw one takes a third of a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "around_incident", lambda diagnosed, prefix: f'<svg id="{prefix}-"></svg>')
        patch.setattr(figures, "whole_run", lambda diagnosis, view, prefix, shown: f'<svg id="{prefix}-"></svg>')
        yield


def make_run(columns: Columns, name: str = "demo", manifest: Mapping[str, Any] | None = None, **rest: Any) -> Run:
    """A run of these columns; row, step, segment, micro_step and optimizer are filled in where they are left out."""
    length = len(next(iter(columns.values())))
    common: Columns = {
        "row": range(length),
        "segment": [0] * length,
        "step": range(length),
        "micro_step": [0] * length,
        "optimizer": ["optimizer"] * length,
    }
    table = pa.table(
        {
            key: pa.array(list(values), COLUMNS[key].arrow if key in COLUMNS else None)
            for key, values in {**common, **columns}.items()
        }
    )
    return Run(f"/somewhere/private/{name}", table, manifest or {}, **rest)


def baseline(run: Run, column: str, center: float, mad: float) -> Baseline:
    """The same band on every row."""
    level: Floats = np.full(len(run), center)
    values = run.values(column).astype(np.float64)
    deviation = np.where(np.isfinite(values), (values - center) / mad, np.nan)
    return Baseline(level, level - mad, level + mad, deviation)


def finding(
    id: str,
    verdict: Verdict,
    evidence: str = "",
    look: str = "",
    rows: tuple[int, ...] = (),
    missing: tuple[str, ...] = (),
) -> Finding:
    return Finding(id, id.replace("_", " "), verdict, evidence, look, rows, missing)


def checks_with(*own: CheckResult) -> tuple[CheckResult, ...]:
    """These checks first, and of every other one that there was nothing to check."""
    told = {check.id for check in own}
    others = (CheckResult(check.id, check.title, Outcome.NOT_APPLICABLE, "nothing to check") for check in CHECKS)
    return (*own, *(check for check in others if check.id not in told))


def incident_of(
    seen: Sequence[Observation],
    last_healthy: int | None,
    last: int,
    severity: str,
    persistence: str,
    lead: tuple[Lead, ...] = (),
) -> Incident:
    """An incident of these observations and no more."""
    extent = {}
    for signal in dict.fromkeys(each.signal for each in seen):
        own = [each for each in seen if each.signal == signal]
        worst = max(own, key=lambda each: INF if each.deviation is None else abs(each.deviation))
        extent[signal] = SignalExtent(own[0].position, len(own), worst)
    return Incident(tuple(seen), last_healthy, last, severity, persistence, lead, extent)


CLEAN = finding(
    "loss_spike_clean_transition",
    Verdict.MATCHED,
    "loss 3.785e+08 where 0.0416 was expected; the transition of row 5 is inside its baselines",
    "a data outlier, a distribution boundary, a logging misalignment",
    (5, 6),
)
UNCLIPPED = finding(
    "large_norm_tiny_coef",
    Verdict.MATCHED,
    "norm 3.892e+09, not clipped",
    "the parameter group that contributed the norm; an anomalous batch",
    (6,),
)


@pytest.fixture
def run_of() -> Callable[..., Run]:
    return make_run


@pytest.fixture
def explosion() -> Diagnosis:
    """A batch out of range at row 6: a clean transition before it, and an update that was not clipped after it."""
    columns = {
        "batch_id": [str(at) for at in range(12)],
        "loss": [0.0625, 0.0576, 0.0531, 0.0489, 0.0451, 0.0417, 3.785e8, 6.02e15, 5.6e15, 5.2e15, 4.8e15, 4.4e15],
        "grad_norm": [0.5, 0.48, 0.461, 0.442, 0.425, 0.408, 3.892e9, 1.55e8, 1.5e8, 1.4e8, 1.35e8, 1.3e8],
        "clip_coef": [None] * 12,
        "attempted": [True] * 12,
        "executed": [True] * 12,
        "moved": [True] * 12,
        "attempted_n": range(1, 13),
        "executed_n": range(1, 13),
        "lr": [0.02] * 12,
        "update_ratio": [0.04] * 6 + [3.978e8] + [0.04] * 5,
        "update_cosine": [1.0] * 12,
    }
    run = make_run(columns, manifest={"optimizers": {"optimizer": {"class": "SGD", "max_norm": None}}, "seed": 0})
    view = View(
        "optimizer",
        run,
        {"loss": baseline(run, "loss", 0.0416, 0.004), "grad_norm": baseline(run, "grad_norm", 0.408, 0.02)},
    )
    seen = (
        Observation(6, "loss", 3.785e8, "outlier", 9.1e10),
        Observation(6, "grad_norm", 3.892e9, "outlier", 1.9e11),
        Observation(6, "update_ratio", 3.978e8, "outlier", 1e10),
        Observation(7, "loss", 6.02e15, "outlier", 1.5e18),
    )
    ruled = finding("loss_nonfinite", Verdict.RULED_OUT, "loss is finite on all rows")
    untold = finding(
        "executed_not_moved", Verdict.CANNOT_TELL, "parameters were not compared", missing=("moved", "update_norm")
    )
    incident = incident_of(seen, 5, 11, "critical", "diverged")
    checks = checks_with(
        CheckResult("schedule_drift", "Scheduler ahead of executed steps", Outcome.NOT_APPLICABLE, "no scheduler"),
        CheckResult("always_clipping", "Clipping on every row", Outcome.PASSED, "no row was clipped"),
    )
    return Diagnosis(run, (view,), (Diagnosed(incident, view, 5, (CLEAN, UNCLIPPED, untold, ruled)),), checks)


@pytest.fixture
def skips() -> Diagnosis:
    """Two skipped rows under a scaler, the scheduler going on, and a NaN loss later: two incidents."""
    columns = {
        "batch_id": ["a", "b", "c", "d", "e", "f", "g", "h"],
        "loss": [3.1823, 7.9891, 4.1737, 4.1906, 5.7833, 5.6942, NAN, 5.1],
        "grad_norm": [2.835, 7.555, INF, INF, 6.435, 5.708, NAN, 4.2],
        "clip_coef": [0.3527, 0.1324, None, None, 0.1554, 0.1752, None, 0.238],
        "max_norm": [1.0] * 8,
        "loss_scale": [65536.0, 65536.0, 65536.0, 32768.0, 16384.0, 16384.0, 16384.0, 8192.0],
        "attempted": [True] * 8,
        "executed": [True, True, False, False, True, True, False, True],
        "attempted_n": range(1, 9),
        "executed_n": [1, 2, 2, 2, 3, 4, 4, 5],
        "scheduled_n": range(1, 9),
        "skip_reason": [None, None, "amp_overflow", "amp_overflow", None, None, "amp_overflow", None],
        "lr": [0.05, 0.0475, 0.045125, 0.04286875, 0.0407253, 0.0386890, 0.0367546, 0.0349169],
        "update_ratio": [0.0777, 0.143, None, None, 0.168, 0.219, None, 0.1],
        "update_cosine": [1.0, 0.983, None, None, 0.842, 0.965, None, 0.9],
    }
    run = make_run(
        columns,
        "amp",
        events=(
            {"kind": "trigger", "row": 2, "trigger": "nonfinite"},
            {"kind": "note", "row": 3, "text": "look here"},
        ),
    )
    view = View("optimizer", run, {})
    overflow = finding(
        "grad_nonfinite_loss_finite",
        Verdict.MATCHED,
        "grad_norm Inf, loss 4.174",
        "AMP overflow; custom backward",
        (2, 3),
    )
    nonfinite = finding("loss_nonfinite", Verdict.MATCHED, "loss NaN", "inputs and forward activations", (6,))
    first = incident_of(
        (Observation(2, "grad_norm", INF, "nonfinite"), Observation(2, "executed", 0.0, "skipped")),
        1,
        3,
        "warning",
        "transient",
        (Lead("grad_norm", 2, 4),),
    )
    second = incident_of((Observation(6, "loss", NAN, "nonfinite"),), 5, 6, "critical", "transient")
    checks = checks_with(
        CheckResult(
            "schedule_drift",
            "Scheduler ahead of executed steps",
            Outcome.FAILED,
            "scheduled 8, executed 5: 3 ahead at rows 2, 3, 6",
            (2, 3, 6),
        ),
    )
    return Diagnosis(
        run, (view,), (Diagnosed(first, view, 1, (overflow,)), Diagnosed(second, view, 5, (nonfinite,))), checks
    )


@pytest.fixture
def healthy() -> Diagnosis:
    run = make_run(
        {"loss": [1.0, 0.9, 0.8], "grad_norm": [1.0, 1.0, 1.0], "attempted": [True] * 3, "executed": [True] * 3},
        "healthy",
        {"seed": 7},
    )
    return Diagnosis(
        run,
        (View("optimizer", run, {}),),
        (),
        checks_with(CheckResult("skip_rate", "Skip rate", Outcome.PASSED, "0 of 3 attempts")),
    )


@pytest.fixture
def hostile() -> Callable[[str], Diagnosis]:
    """A run whose every free text is the one given."""

    def build(text: str) -> Diagnosis:
        columns = {
            "batch_id": [text] * 4,
            "loss": [1.0, 1.0, 9.0, 1.0],
            "grad_norm": [1.0] * 4,
            "attempted": [True] * 4,
            "executed": [True] * 4,
        }
        names = {"optimizer": [text] * 4, "user_domain": [text] * 4}
        events = ({"kind": "note", "row": 1, "text": text},)
        run = make_run(
            {**columns, **names}, text.replace("/", "|"), {text: {"inner": text}}, notes=(text,), events=events
        )
        view = View(text, run, {})
        incident = incident_of((Observation(2, "loss", 9.0, "outlier", 80.0),), 1, 2, "warning", "transient")
        matched = Finding("loss_spike_clean_transition", text, Verdict.MATCHED, text, text, (2,))
        untold = Finding("loss_nonfinite", text, Verdict.CANNOT_TELL, text, text, (), (text,))
        checks = checks_with(*(CheckResult("skip_rate", text, outcome, text, (1,)) for outcome in Outcome))
        return Diagnosis(run, (view,), (Diagnosed(incident, view, 1, (matched, untold)),), checks)

    return build
