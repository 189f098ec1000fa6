"""The sample runs, whose figures are published, and what must be said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from spikeview.importers import open_run
from spikeview.rules.diagnosis import Diagnosed, Diagnosis, diagnose
from spikeview.rules.finding import Outcome, Verdict

SAMPLES = Path(__file__).parents[2] / "sample_runs"


def diagnosis(name: str) -> Diagnosis:
    return diagnose(open_run(SAMPLES / name))


def matched(diagnosed: Diagnosed) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {each.id: (each.evidence, each.rows) for each in diagnosed.findings if each.verdict is Verdict.MATCHED}


def test_amp_clock_drift_names_the_drift_and_both_skips() -> None:
    found = diagnosis("amp_clock_drift")
    [drift] = [check for check in found.checks if check.outcome is Outcome.FAILED]
    assert (drift.id, drift.rows) == ("schedule_drift", (2, 3))
    assert drift.evidence.startswith("drift 2 (scheduled 6, executed 4)")
    [diagnosed] = found.incidents
    told = matched(diagnosed)
    assert set(told) == {"attempted_not_executed", "grad_nonfinite_loss_finite"}
    assert all(rows == (2, 3) for _, rows in told.values())
    assert diagnosed.transition == 1


def test_update_against_gradient_begins_at_row_122_with_ordinary_norm_and_size() -> None:
    [diagnosed] = diagnosis("update_against_gradient").incidents
    first = diagnosed.incident.first_bad
    assert (first.position, first.signal) == (122, "update_cosine")
    assert first.value == pytest.approx(-0.258, abs=5e-4)
    assert first.deviation is not None
    assert first.deviation < -5
    assert (diagnosed.incident.last_healthy, diagnosed.incident.last) == (121, 123)
    assert (diagnosed.incident.severity, diagnosed.incident.persistence) == ("warning", "transient")
    assert diagnosed.transition == 122
    told = matched(diagnosed)
    assert set(told) == {"ordinary_grad_abnormal_update"}
    evidence, rows = told["ordinary_grad_abnormal_update"]
    assert rows == (122, 123)
    parts = evidence.split("; ")
    assert any(part.startswith("pre-clip norm 1.411 ") and part.endswith(" ordinary") for part in parts)
    assert any(part.startswith("update ratio 0.004521 ") and part.endswith(" ordinary") for part in parts)


def test_bf16_explosion_begins_with_the_batch_and_its_own_update_explains_the_next_loss() -> None:
    [diagnosed] = diagnosis("bf16_explosion").incidents
    first = diagnosed.incident.first_bad
    assert (first.position, first.signal, diagnosed.transition) == (6, "loss", 5)
    assert first.value == pytest.approx(3.785e8, rel=1e-3)
    assert diagnosed.incident.persistence == "diverged"
    told = matched(diagnosed)
    assert list(told) == ["loss_spike_clean_transition", "large_norm_tiny_coef"]
    assert told["loss_spike_clean_transition"][1] == (5, 6)
    evidence = told["large_norm_tiny_coef"][0]
    assert "pre-clip norm 3.892e+09" in evidence
    assert "not clipped" in evidence
    assert "explains the loss of row 7 (6.021e+15)" in evidence


def test_bf16_clipped_is_the_same_batch_without_the_damage() -> None:
    [diagnosed] = diagnosis("bf16_clipped").incidents
    assert (diagnosed.incident.first_bad.position, diagnosed.incident.last) == (6, 6)
    assert diagnosed.incident.persistence == "transient"
    assert "clip coefficient 2.569e-10" in matched(diagnosed)["large_norm_tiny_coef"][0]


def test_fp16_overflow_is_a_loss_of_inf_and_a_skip() -> None:
    [diagnosed] = diagnosis("fp16_overflow").incidents
    first = diagnosed.incident.first_bad
    assert (first.position, first.signal, first.value) == (6, "loss", float("inf"))
    told = matched(diagnosed)
    assert list(told) == ["loss_nonfinite", "attempted_not_executed"]
    assert told["attempted_not_executed"][1] == (6,)
    evidence, rows = told["loss_nonfinite"]
    assert rows == (6,)
    assert "largest activation Inf; after an ordinary transition at row 5" in evidence


def test_healthy_has_nothing() -> None:
    found = diagnosis("healthy")
    assert found.incidents == ()
    assert not [check for check in found.checks if check.outcome is Outcome.FAILED]
