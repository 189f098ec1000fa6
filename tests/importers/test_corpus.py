"""Logs of other people's runs: what a correct importer shows of them, and what triage says."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spikeview.importers import Asked, RunError, open_run, runs_in
from spikeview.rules.diagnosis import diagnose
from spikeview.rules.triage import triage
from spikeview.run import Run
from tests.importers.written import column

CORPUS = os.environ.get("SPIKEVIEW_LOG_CORPUS", "")

pytestmark = pytest.mark.skipif(not CORPUS, reason="SPIKEVIEW_LOG_CORPUS names no folder of logs")


def log(name: str) -> Run:
    return open_run(Path(CORPUS) / name)


def told(name: str) -> dict[str, Any]:
    return triage(diagnose(log(name)))


def at(run: Run, name: str, *steps: int) -> list[Any]:
    """A column at these steps."""
    found = dict(zip(column(run, "step"), column(run, name), strict=True))
    return [found[step] for step in steps]


def test_bloom_has_its_norm_out_four_rows_before_the_peak_of_its_loss() -> None:
    run = log("megatron_bloom176b_excerpt.log")
    assert column(run, "step") == [*range(31214, 31223), 31250, 31251]
    assert at(run, "grad_norm", 31214, 31215, 31216, 31217, 31218, 31219) == [
        0.242,
        0.947,
        2.390,
        15.886,
        145.119,
        960.351,
    ]
    assert run.values("loss").argmax() == 5
    assert at(run, "loss", 31219) == [5.098124]
    assert "loss_scale" not in run
    assert run.values("executed").all()
    found = triage(diagnose(run))
    [incident] = found["incidents"]
    assert (incident["first_bad"]["step"], incident["first_bad"]["signal"]) == (31215, "grad_norm")
    assert incident["first_bad"]["range"] is None
    assert incident["lead"] == [{"signal": "grad_norm", "row": 1, "rows_ahead": 4}]
    assert incident["findings"][0]["id"] == "large_norm_tiny_coef"
    assert next(check for check in found["checks"] if check["id"] == "gap_in_log")["rows"] == [9]


def test_megatron_rows_of_ten_iterations_tell_how_many_were_skipped() -> None:
    run = log("megatron_gpt2_n4.out")
    assert column(run, "step") == list(range(10, 201, 10))
    assert column(run, "user_number_of_skipped_iterations")[:4] == [10, 8, 1, 0]
    assert column(run, "executed_n")[:3] == [0, 2, 11]
    assert column(run, "loss")[:3] == [None, 12.03115, 22.47505]
    assert column(run, "grad_norm")[:3] == [None, None, 16.999]
    assert column(run, "loss_scale")[:3] == [8388608, 32768, 16384]


def test_deepspeed_counters_and_messages() -> None:
    counted = log("deepspeed_chat_step1.log")
    assert (counted.values("attempted_n")[-1], counted.values("executed_n")[-1]) == (7360, 7360 - 139)
    assert not counted.recorded("loss").any()
    found = triage(diagnose(counted))
    assert found["incidents"] == []
    assert (
        next(check for check in found["checks"] if check["id"] == "skip_rate")["evidence"]
        == "139 of 7,360 attempts skipped"
    )
    run = log("deepspeed_chat_step2.log")
    skipped = np.flatnonzero(~run.values("executed"))
    assert run.values("step")[skipped].tolist() == [*range(10), 145, 482, 485, 486, 557, 558, 565, 1541, 1614, 1724]
    assert (run.values("attempted_n")[-1], run.values("executed_n")[-1]) == (1840, 1820)
    incidents = triage(diagnose(run))["incidents"]
    assert [incident["first_bad"]["step"] for incident in incidents] == [145, 482, 557, 565, 1541, 1614, 1724]
    assert {incident["findings"][0]["id"] for incident in incidents} == {"attempted_not_executed"}


def test_fairseq_attempts_two_updates_in_vain() -> None:
    run = log("fairseq_13b_1gpu.log")
    assert (run.values("attempted_n")[-1], run.values("executed_n")[-1]) == (12, 10)
    ran = run.values("executed")
    assert run.values("loss")[ran][:5].tolist() == [16.475, 16.446, 25.22, 18.079, 23.729]
    assert run.values("grad_norm")[ran][2] == 131.281
    assert column(run, "loss_scale")[2:5] == [4, 2, 1]


def test_two_states_of_one_run_and_their_quiet_start(tmp_path: Path) -> None:
    for steps in (1000, 2000):
        place = tmp_path / f"checkpoint-{steps}"
        place.mkdir()
        (place / "trainer_state.json").write_bytes((Path(CORPUS) / f"hf_trainer_state_ckpt{steps}.json").read_bytes())
    run = open_run(tmp_path)
    assert (len(run), column(run, "step")[-1]) == (200, 2000)
    assert not any("of another run" in note for note in run.notes)
    assert (run.values("grad_norm").max(), run.values("step")[run.values("grad_norm").argmax()]) == (
        pytest.approx(16.2518, abs=1e-4),
        50,
    )
    assert triage(diagnose(run))["incidents"] == []


@pytest.mark.parametrize(
    ("name", "signal", "step", "bounds", "rule"),
    [
        ("nan_loss_every1", "loss", 12, None, "loss_nonfinite"),
        ("nan_loss_every5", "grad_norm", 15, [11, 15], None),
        ("finite_loss_nan_grad_every1", "grad_norm", 12, None, "grad_nonfinite_loss_finite"),
        ("finite_loss_nan_grad_every5", "grad_norm", 15, [11, 15], None),
    ],
)
def test_masked_nan_losses(name: str, signal: str, step: int, bounds: list[int] | None, rule: str | None) -> None:
    found = told(f"hf_trainer_state_{name}.json")
    [incident] = found["incidents"]
    first = incident["first_bad"]
    assert (first["signal"], first["step"], first["range"]) == (signal, step, bounds)
    assert next(check for check in found["checks"] if check["id"] == "masked_nan_loss")["verdict"] == "failed"
    verdicts = {finding["id"]: finding["verdict"] for finding in incident["findings"]}
    if rule is not None:
        assert incident["findings"][0]["id"] == rule
    else:
        assert verdicts["grad_nonfinite_loss_finite"] == "cannot_tell"


def test_nanogpt_excursions_are_there_and_early_training_is_no_incident() -> None:
    run = log("nanogpt_iter.log")
    assert len(run) == 2156
    assert at(run, "loss", 213, 1678, 1685, 1916, 1918) == [2.4521, 0.2184, 0.8024, 0.0320, 0.6805]
    assert "lr" not in run
    assert "grad_norm" not in run
    assert sum(event["kind"] == "validation" for event in run.events) == 11
    assert all(incident["first_bad"]["step"] > 1000 for incident in triage(diagnose(run))["incidents"])


def test_modded_nanogpt_spikes_at_the_same_steps_of_both_runs() -> None:
    spikes = []
    for name, values in (("a", [5.0580, 5.2465, 4.3024]), ("b", [5.1976, 5.3928, 4.4433])):
        run = log(f"modded_nanogpt_{name}.txt")
        assert len(run) == 5100
        assert at(run, "loss", 919, 947, 1106) == values
        assert not np.isnan(run.values("loss")).any()
        incidents = triage(diagnose(run))["incidents"]
        spikes.append([incident["first_bad"]["step"] for incident in incidents])
        known = [each for each in incidents if each["first_bad"]["step"] in (919, 947)]
        assert [each["last_row"] - each["first_bad"]["row"] for each in known] == [0, 0]  # recovered the row after
    assert spikes[0] == spikes[1]


@pytest.mark.parametrize(
    ("name", "rows"),
    [("llmc_adamw.log", 9536), ("llamafactory_trainer_log.jsonl", 204), ("lightning_metrics.csv", 320)],
)
def test_healthy_logs_have_no_incident(name: str, rows: int) -> None:
    found = told(name)
    assert (found["rows"], found["incidents"]) == (rows, [])


def test_lightning_steps_and_epochs_are_on_different_rows() -> None:
    run = log("lightning_metrics.csv")
    assert column(run, "step")[:3] == [49, 99, 149]
    epochs = [event for event in run.events if "train_loss_epoch" in event]
    merged = (
        sum(value is not None for value in column(run, "user_train_loss_epoch"))
        if "user_train_loss_epoch" in run
        else 0
    )
    assert len(epochs) + merged == 1000


def test_a_chart_of_eight_runs_and_a_table_of_runs() -> None:
    path = Path(CORPUS) / "wandb_history_multi_run.csv"
    names = runs_in(path)
    assert len(names) == 8
    assert len(open_run(path, asked=Asked(run="gpt2"))) == 386
    assert sum(len(open_run(path, asked=Asked(run=name))) < 386 for name in names) == 7
    with pytest.raises(RunError, match="a table of runs"):
        log("wandb_runs_table.csv")


def test_the_scalars_of_an_event_file() -> None:
    run = log("events.out.tfevents.0000000001.host.1.0")
    counts = [sum(value is not None for value in column(run, f"user_linear_{tag}")) for tag in (1, 2)]
    assert counts == [10, 14]
    assert not math.isnan(sum(run.values("user_linear_2")))
