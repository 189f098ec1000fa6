"""Hugging Face: states of one run, means that hide NaN, and onsets between two logged steps."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from spikeview.importers import RunError
from spikeview.report.content import content
from spikeview.rules.diagnosis import diagnose
from spikeview.rules.triage import triage
from tests.importers.written import column, opened, written

NAN = math.nan


def entries(losses: list[float], norms: list[float], every: int = 1) -> list[dict[str, Any]]:
    pairs = enumerate(zip(losses, norms, strict=True), start=1)
    return [
        {"step": n * every, "epoch": n / 10, "loss": loss, "grad_norm": norm, "learning_rate": 1e-3}
        for n, (loss, norm) in pairs
    ]


def state(path: Path, history: list[dict[str, Any]]) -> Path:
    return written(path, json.dumps({"global_step": history[-1]["step"], "log_history": history}, indent=2))


def incident(path: Path) -> dict[str, Any]:
    [found] = triage(diagnose(opened(path)))["incidents"]
    return dict(found)


def verdicts(found: dict[str, Any]) -> dict[str, str]:
    return {finding["id"]: finding["verdict"] for finding in found["findings"]}


def test_of_several_states_of_a_run_the_newest_is_read(tmp_path: Path) -> None:
    history = entries([2.0] * 10, [1.0] * 10, every=10)
    for steps in (20, 100, 60):
        state(tmp_path / f"checkpoint-{steps}" / "trainer_state.json", history[: steps // 10])
    run = opened(tmp_path)
    assert column(run, "step") == list(range(10, 101, 10))
    assert any("3 states found; read from checkpoint-100, the newest" in note for note in run.notes)
    assert not any("of another run" in note for note in run.notes)
    state(tmp_path / "checkpoint-40" / "trainer_state.json", entries([9.0] * 4, [1.0] * 4, every=10))
    assert any("of another run, and left out: checkpoint-40" in note for note in opened(tmp_path).notes)


def test_evaluations_and_the_summary_are_no_rows(tmp_path: Path) -> None:
    history = [
        *entries([2.0] * 3, [1.0] * 3),
        {"eval_loss": 1.5, "step": 3},
        {"train_loss": 2.0, "train_runtime": 3.0, "step": 3},
    ]
    run = opened(state(tmp_path / "any name.json", history))
    assert len(run) == 3
    assert [(event["kind"], event.get("loss")) for event in run.events] == [("validation", 1.5), ("metrics", None)]


def test_a_loss_of_0_beside_a_nan_norm_is_the_nan_that_it_hides(tmp_path: Path) -> None:
    losses, norms = [2.0] * 11 + [0.0] * 5, [1.0] * 11 + [NAN] * 5
    found = incident(state(tmp_path / "s.json", entries(losses, norms)))
    assert (found["first_bad"]["step"], found["first_bad"]["signal"], found["first_bad"]["range"]) == (12, "loss", None)
    assert (verdicts(found)["loss_nonfinite"], verdicts(found)["grad_nonfinite_loss_finite"]) == (
        "matched",
        "ruled_out",
    )


def test_a_finite_loss_beside_a_nan_norm_is_what_it_says_where_every_step_is_logged(tmp_path: Path) -> None:
    losses, norms = [2.0] * 12 + [0.0] * 4, [1.0] * 11 + [NAN] * 5
    found = incident(state(tmp_path / "s.json", entries(losses, norms)))
    assert (found["first_bad"]["step"], found["first_bad"]["signal"]) == (12, "grad_norm")
    assert found["findings"][0]["id"] == "grad_nonfinite_loss_finite"
    assert found["findings"][0]["verdict"] == "matched"


def test_between_two_logged_steps_the_onset_is_a_range_and_a_mean_is_no_proof(tmp_path: Path) -> None:
    losses, norms = [2.0] * 8 + [2.1, 0.0], [1.0] * 8 + [NAN, NAN]
    found = incident(state(tmp_path / "s.json", entries(losses, norms, every=5)))
    assert (found["first_bad"]["step"], found["first_bad"]["range"]) == (45, [41, 45])
    assert verdicts(found)["grad_nonfinite_loss_finite"] == "cannot_tell"
    told = next(each for each in found["findings"] if each["id"] == "grad_nonfinite_loss_finite")["evidence"]
    assert "loss (mean of 5 steps) 2.1" in told


def test_a_spike_in_a_mean_accuses_no_single_transition(tmp_path: Path) -> None:
    losses = [2.0 + 0.01 * (n % 3) for n in range(40)]
    losses[30] = 9.0
    found = incident(state(tmp_path / "s.json", entries(losses, [1.0 + 0.01 * (n % 3) for n in range(40)], every=10)))
    assert found["first_bad"]["range"] == [301, 310]
    told = next(each for each in found["findings"] if each["id"] == "loss_spike_clean_transition")
    assert (told["verdict"], "between step 300 and 310" in told["evidence"]) == ("cannot_tell", True)


def test_a_torn_state_is_one_line(tmp_path: Path) -> None:
    path = state(tmp_path / "checkpoint-1" / "trainer_state.json", entries([2.0], [1.0]))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(RunError, match=r"is no sound JSON"):
        opened(tmp_path)


def test_a_headline_on_means_that_hide_nan_names_both_places_to_look(tmp_path: Path) -> None:
    losses, norms = [2.0, 2.1, 1.9, 2.0, 2.2, 0.0], [1.0, 1.1, 0.9, 1.0, math.nan, math.nan]
    run = opened(state(tmp_path / "trainer_state.json", entries(losses, norms, every=5)))
    [told] = content(diagnose(run))["incidents"]
    assert "in steps 21 to 25" in told["headline"]
    assert "before the loss" not in told["headline"]  # which may have been as bad in those steps
    assert "log(0)" in told["headline"]
    assert "custom backward" in told["headline"]


def test_a_history_without_an_entry_on_training_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="log_history holds no entry on training, and 1 other") as refused:
        opened(state(tmp_path / "trainer_state.json", [{"eval_loss": 1.0, "step": 5}]))
    assert "checkpoint" in str(refused.value)
