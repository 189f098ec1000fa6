"""HEALTHY: runs with nothing wrong in them, however they look. Any incident of theirs is a false one."""

from __future__ import annotations

from benchmarks.diagnosis.case import NONE, Case
from benchmarks.diagnosis.faults.arithmetic import is_fp16
from benchmarks.diagnosis.faults.data import is_model
from benchmarks.diagnosis.loop import Loop

SHORT, MIDDLE, LONG, LONGEST = (400, 400), (800, 800), (2_000, 2_000), (8_000, 8_000)


def resumes(loop: Loop) -> None:
    """Resume with everything restored, once in the middle."""
    if loop.row == loop.rows // 2:
        loop.resume()


HEALTHY: tuple[Case, ...] = (
    Case("warm_up", incident=NONE, settings={"schedule": "warm_up_cosine"}, rows=SHORT),
    Case("small_batches", incident=NONE, settings={"batch": 4}, rows=SHORT),
    Case("whole_resume", incident=NONE, rows=SHORT, before=resumes),
    Case("warm_up_and_decay", incident=NONE, settings={"schedule": "warm_up_cosine"}, rows=MIDDLE),
    # without clipping some of these diverge at their rates
    Case(
        "two_at_a_time",
        incident=NONE,
        settings={"batch": 2, "max_norm": 1.0},
        fits=is_model("mlp", "char"),
        rows=MIDDLE,
    ),
    Case("accumulation", incident=NONE, settings={"accumulate": 4}, rows=MIDDLE),
    Case("epochs", incident=NONE, settings={"epoch": 30}, rows=MIDDLE),
    Case(
        "amp_calibration",
        incident=NONE,
        settings={"init_scale": 2.0**24, "growth_interval": 150},
        fits=is_fp16,
        rows=MIDDLE,
    ),
    Case("curriculum", incident=NONE, settings={"curriculum": True}, rows=LONG),
    Case("cosine_restarts", incident=NONE, settings={"schedule": "restarts"}, rows=LONG),
    Case("long_run", incident=NONE, fits=is_model("mlp"), rows=LONGEST),
)
