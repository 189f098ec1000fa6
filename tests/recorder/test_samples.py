"""The published figures come out of the recorder: each sample run is recorded anew and compared."""

from __future__ import annotations

import runpy
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from recorder.store import read_run  # noqa: E402  # after the skip

ROOT = Path(__file__).parents[2]
INF = float("inf")

REPLAY_A = [
    # step, loss, grad_norm, clip_coef, update_ratio, update_cosine
    (119, 0.3402, 3.836, 0.2607, 6.43e-3, 0.631),
    (120, 0.0300, 0.712, 1.0000, 6.32e-3, 0.521),
    (121, 0.2044, 1.997, 0.5008, 5.57e-3, 0.210),
    (122, 0.0984, 1.411, 0.7087, 4.52e-3, -0.258),
    (123, 0.2803, 2.937, 0.3404, 3.41e-3, -0.382),
]
REPLAY_B = [
    # step, loss, grad_norm, clip_coef, lr, loss_scale, clocks, update_ratio, update_cosine
    (0, 3.1823, 2.835, 0.3527, 0.05000, 65536, (1, 1, 1), "0.0777", 1.0),
    (1, 7.9891, 7.555, 0.1324, 0.04750, 65536, (2, 2, 2), "0.143", 0.983),
    (2, 4.1737, INF, None, 0.04512, 65536, (3, 2, 3), None, None),
    (3, 4.1906, INF, None, 0.04287, 32768, (4, 2, 4), None, None),
    (4, 5.7833, 6.435, 0.1554, 0.04073, 16384, (5, 3, 5), "0.168", 0.842),
    (5, 5.6942, 5.708, 0.1752, 0.03869, 16384, (6, 4, 6), "0.219", 0.965),
]
STABILITY = {
    # step, loss, grad_norm, executed, clip_coef, weight after
    "fp16_overflow": [
        (5, "0.0416", "0.408", True, None, None),
        (6, "inf", "inf", False, None, None),
        (7, "0.0383", "0.391", True, None, None),
    ],
    "bf16_explosion": [
        (5, "0.0417", "0.408", True, None, "0.1957"),
        (6, "3.785e8", "3.892e9", True, None, "-7.7846e7"),
        (7, "6.02e15", "1.55e8", True, None, "-7.474e7"),
    ],
    "bf16_clipped": [
        (5, "0.0417", "0.408", True, "1.0", "0.1957"),
        (6, "3.785e8", "3.892e9", True, "2.57e-10", "0.1757"),
        (7, "0.0309", "0.352", True, "1.0", "0.1687"),
    ],
}


def record(name: str, out: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Run a sample's script as a user does, and read the rows it wrote."""
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setattr(sys, "argv", ["record.py", "--out", str(out)])
    runpy.run_module(f"sample_runs.{name}.record", run_name="__main__")
    rows: list[dict[str, Any]] = read_run(out).table.to_pylist()
    return rows


def same(value: float | None, published: str | None) -> bool:
    """Equal to the last digit that was published: at most half of it away."""
    if value is None or published is None:
        return value is published
    last_digit = Decimal(published)
    if not last_digit.is_finite():
        return value == float(published)
    half = 0.5001 * 10.0 ** int(last_digit.as_tuple().exponent)
    return abs(value - float(published)) <= half


def test_update_against_gradient_shows_the_five_rows_of_replay_a(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = record("update_against_gradient", tmp_path / "run", monkeypatch)
    for step, loss, grad_norm, clip_coef, ratio, cosine in REPLAY_A:
        row = rows[step]
        assert row["step"] == step
        assert row["executed"] is True
        assert row["loss"] == pytest.approx(loss, abs=5e-5)
        assert row["grad_norm"] == pytest.approx(grad_norm, abs=5e-4)
        assert row["clip_coef"] == pytest.approx(clip_coef, abs=5e-5)
        assert row["update_ratio"] == pytest.approx(ratio, abs=5e-6)
        assert row["update_cosine"] == pytest.approx(cosine, abs=5e-4)


def test_the_trigger_of_replay_a_fires_at_row_123_and_the_loss_on_its_batch_rises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record("update_against_gradient", tmp_path / "run", monkeypatch)
    events = read_run(tmp_path / "run").events
    assert next(event["row"] for event in events if event["kind"] == "trigger") == 123
    note = next(event["text"] for event in events if event["kind"] == "note")
    assert note.endswith("0.28032, 0.29854")


def test_amp_clock_drift_shows_the_six_rows_of_replay_b(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = record("amp_clock_drift", tmp_path / "run", monkeypatch)
    assert len(rows) == len(REPLAY_B)
    for row, (step, loss, grad_norm, clip_coef, lr, scale, clocks, ratio, cosine) in zip(rows, REPLAY_B, strict=True):
        assert row["step"] == step
        assert row["loss"] == pytest.approx(loss, abs=5e-5)
        assert row["grad_norm"] == pytest.approx(grad_norm, abs=5e-4)
        assert row["clip_coef"] == (None if clip_coef is None else pytest.approx(clip_coef, abs=5e-5))
        assert row["lr"] == pytest.approx(lr, abs=5.1e-6)
        assert row["loss_scale"] == scale
        assert (row["attempted_n"], row["executed_n"], row["scheduled_n"]) == clocks
        assert same(row["update_ratio"], ratio)
        assert row["update_cosine"] == (None if cosine is None else pytest.approx(cosine, abs=5e-4))
        assert row["skip_reason"] == ("amp_overflow" if step in (2, 3) else None)


@pytest.mark.parametrize("name", STABILITY)
def test_one_outlier_in_three_precisions(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = record(name, tmp_path / "run", monkeypatch)
    assert len(rows) == 12
    for step, loss, grad_norm, executed, clip_coef, weight in STABILITY[name]:
        row = rows[step]
        assert same(row["loss"], loss), row["loss"]
        assert same(row["grad_norm"], grad_norm), row["grad_norm"]
        assert row["executed"] is executed
        assert same(row["clip_coef"], clip_coef), row["clip_coef"]
        if weight is not None:
            assert same(row["user_weight"], weight), row["user_weight"]
    assert {row["precision"] for row in rows} == {name[:4]}


def test_rate_of_anti_aligned_updates_by_batch_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    published = {
        # batch: lowest rate, highest rate, worst cosine, its loss before and after
        256: (0.0, 0.0075, -0.092, 0.2324, 0.2326),
        32: (0.02, 0.035, -0.235, 0.1102, 0.1113),
        8: (0.0725, 0.1075, -0.588, 0.0101, 0.0119),
        2: (0.07, 0.1375, -0.481, 0.0333, 0.0383),
    }
    table = runpy.run_module("sample_runs.update_against_gradient.sweep")["sweep"]()
    for batch_size, low, high, worst in table:
        expected_low, expected_high, cosine, before, after = published.pop(batch_size)
        assert low == pytest.approx(expected_low)
        assert high == pytest.approx(expected_high)
        assert worst.cosine == pytest.approx(cosine, abs=5e-4)
        assert worst.loss_before == pytest.approx(before, abs=5e-5)
        assert worst.loss_after == pytest.approx(after, abs=5e-5)
    assert not published


def test_healthy_run_has_every_clock_in_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = record("healthy", tmp_path / "run", monkeypatch)
    assert len(rows) == 600
    assert all(row["attempted_n"] == row["executed_n"] == row["scheduled_n"] == row["row"] + 1 for row in rows)


def test_a_quadratic_past_its_stable_rate_is_told_from_its_batch_by_the_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recorder.replay import replay

    rows = record("quadratic_divergence", tmp_path / "run", monkeypatch)
    assert [row["user_x"] for row in rows[100:105]] == [2.0, -3.0, 4.5, -6.75, 10.125]
    result = replay(tmp_path / "run", 101, "sample_runs.quadratic_divergence.record:build")
    verdicts = {each["id"]: each["verdict"] for each in result["comparisons"]}
    assert (verdicts["step_length"], verdicts["batch"], verdicts["optimizer_history"]) == (
        "supports",
        "refutes",
        "refutes",
    )
