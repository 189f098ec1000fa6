"""CSV and JSON lines of any trainer: which column is which, which rows are of training, what is malformed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from spikeview.importers import Asked, RunError, open_run, runs_in
from spikeview.rules.diagnosis import diagnose
from spikeview.rules.triage import triage
from tests.importers.written import column, opened, written

ROWS = [{"step": step, "train/loss": 2.0 + step / 10, "learning_rate": 1e-3, "seen": "cats"} for step in range(4)]


def csv(rows: list[dict[str, object]], delimiter: str = ",") -> list[str]:
    return [delimiter.join(rows[0]), *(delimiter.join(map(str, row.values())) for row in rows)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_is_read_by_the_names_of_its_columns(delimiter: str, tmp_path: Path) -> None:
    run = opened(written(tmp_path / "log.txt", csv(ROWS, delimiter)))
    assert column(run, "step") == [0, 1, 2, 3]
    assert column(run, "loss") == [2.0, 2.1, 2.2, 2.3]
    assert column(run, "lr") == [1e-3] * 4
    assert column(run, "user_seen") == ["cats"] * 4
    assert "grad_norm" not in run
    assert "loss = train/loss" in run.notes[0]
    assert "--map" in run.notes[1]


def test_json_lines_are_read_by_their_keys(tmp_path: Path) -> None:
    nested = [row | {"perf": {"tokens": 5}, "histogram": [1, 2]} for row in ROWS]
    run = opened(written(tmp_path / "log", map(json.dumps, nested)))
    assert column(run, "loss") == [2.0, 2.1, 2.2, 2.3]
    assert column(run, "user_perf.tokens") == [5] * 4
    assert "user_histogram" not in run


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_the_guess_can_be_told_otherwise(name: str, tmp_path: Path) -> None:
    rows = [row | {"aux": 7.0, "norm of all": 3.0} for row in ROWS]
    path = written(tmp_path / name, csv(rows) if name.endswith("csv") else map(json.dumps, rows))
    run = opened(path, loss="aux", grad_norm="norm of all")
    assert column(run, "loss") == [7.0] * 4
    assert column(run, "grad_norm") == [3.0] * 4
    assert column(run, "user_train/loss") == [2.0, 2.1, 2.2, 2.3]
    with pytest.raises(RunError, match=r"has no auxx; it has step, train/loss"):
        opened(path, loss="auxx")


def test_a_table_without_a_loss_is_refused_and_says_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"name one with --map loss=NAME: there are step, quality"):
        opened(written(tmp_path / "log.csv", ["step,quality", "0,1.0"]))


def test_a_table_with_a_norm_and_no_loss_says_so(tmp_path: Path) -> None:
    run = opened(written(tmp_path / "log.csv", ["step,quality,grad_norm", "0,1.0,2.0", "1,1.0,2.0"]))
    assert "no column is named like a loss: name one with --map loss=NAME: there are quality" in run.notes


def test_values_of_every_spelling_are_what_they_say_and_an_empty_cell_is_not_recorded(tmp_path: Path) -> None:
    cells = ["nan", "NaN", "inf", "-Infinity", '"2.5"', "", "None", "tensor(1.5)"]
    run = opened(written(tmp_path / "log.csv", ["step,loss", *(f"{step},{cell}" for step, cell in enumerate(cells))]))
    found = column(run, "loss")
    assert [math.isnan(value) for value in found[:2]] == [True, True]  # type: ignore[arg-type]
    assert found[2:5] == [math.inf, -math.inf, 2.5]
    assert found[5:] == [1.5]  # a row that holds nothing else is no transition
    assert [event["step"] for event in run.events] == [5, 6]
    lines = [
        '{"step": 0, "loss": NaN}',
        '{"step": 1, "loss": -Infinity}',
        '{"step": 2, "loss": "1.5"}',
        '{"step": 3, "loss": null, "lr": 1}',
    ]
    run = opened(written(tmp_path / "log.jsonl", lines))
    assert math.isnan(column(run, "loss")[0])  # type: ignore[arg-type]
    assert column(run, "loss")[1:] == [-math.inf, 1.5, None]


def test_malformed_lines_are_counted_and_hide_no_other(tmp_path: Path) -> None:
    good = [f'{{"step": {step}, "loss": 2.5}}' for step in range(300)]
    bad = ['{"step": 5, "lo', "Traceback (most recent call last):", "[1, 2]", '{"step": 9} }', "\0\0\0"]
    lines = [
        line
        for at, line in enumerate(good)
        for line in ([bad[at // 50], line] if at % 50 == 0 and at < 250 else [line])
    ]
    run = opened(written(tmp_path / "log.jsonl", [*lines, '{"step": 300, "lo']))
    assert column(run, "step") == list(range(300))
    assert any("6 malformed lines left out" in note for note in run.notes)
    rows = [f"{step},2.5,1.0" for step in range(300)]
    rows[100:100] = ["7,3", "1,2,3,4", '7,"3,1', "8,x,y"]
    run = opened(written(tmp_path / "log.csv", ["step,loss,grad_norm", *rows]))
    assert column(run, "step") == list(range(300))
    notes = " ".join(run.notes)
    assert "3 malformed lines left out" in notes
    assert "1 cell holds no number (loss)" in notes


def test_rows_of_one_step_become_one_unless_they_say_the_same_thing_twice(tmp_path: Path) -> None:
    lines = [
        '{"step": 1, "loss": 2.0}', '{"step": 1, "grad_norm": 1.0}', '{"step": 1, "val_loss": 3.0}',
        '{"step": 2, "loss": 2.1}', '{"step": 2, "loss": 2.2}',
    ]  # fmt: skip
    run = opened(written(tmp_path / "log.jsonl", lines))
    assert column(run, "step") == [1, 2, 2]
    assert column(run, "micro_step") == [0, 0, 1]
    assert column(run, "grad_norm") == [1.0, None, None]
    assert column(run, "user_val_loss") == [3.0, None, None]


def test_rows_of_validation_are_no_rows_of_training(tmp_path: Path) -> None:
    lines = [
        '{"step": 1, "split": "train", "loss": 2.0}', '{"step": 1, "split": "val", "loss": 9.0}',
        '{"step": 2, "split": "train", "loss": 2.1}', '{"step": 2, "split": "test", "loss": 9.5}',
    ]  # fmt: skip
    run = opened(written(tmp_path / "log.jsonl", lines))
    assert column(run, "loss") == [2.0, 2.1]
    assert [(event["kind"], event["loss"], event["row"]) for event in run.events] == [
        ("validation", 9.0, 0),
        ("validation", 9.5, 1),
    ]


def test_steps_that_come_again_after_a_resume_are_a_segment_of_their_own(tmp_path: Path) -> None:
    steps = [0, 1, 2, 3, 4, 2, 3, 4, 5]
    run = opened(written(tmp_path / "log.csv", ["step,loss", *(f"{step},2.5" for step in steps)]))
    assert column(run, "segment") == [0] * 5 + [1] * 4
    assert [(event["kind"], event["row"], event["step"]) for event in run.events] == [("resume", 5, 2)]
    assert list(run.abandoned) == [False, False, True, True, True] + [False] * 4
    assert next(check for check in diagnose(run).checks if check.id == "duplicate_steps").outcome.value == "passed"


def test_a_counter_of_each_epoch_is_no_step(tmp_path: Path) -> None:
    rows = [f"{epoch},{batch},2.5" for epoch in range(3) for batch in range(4)]
    run = opened(written(tmp_path / "log.csv", ["epoch,step,loss", *rows]))
    assert not run.recorded("step").any()
    assert column(run, "segment") == [0] * 12
    assert column(run, "user_step") == [0, 1, 2, 3] * 3


def test_marked_skips_are_attempts_that_did_not_execute(tmp_path: Path) -> None:
    lines = ["step,lr,grad_l2_pre_clip,loss,skipped,scaler_scale", "0,1e-3,2.0,1.0,0,1024", "1,1e-3,nan,1.1,1,1024"]
    run = opened(written(tmp_path / "amp.csv", lines))
    assert column(run, "attempted") == [True, True]
    assert column(run, "executed") == [True, False]
    assert column(run, "loss_scale") == [1024, 1024]


def test_a_norm_of_which_nobody_says_that_it_is_from_before_clipping_is_called_ordinary_by_nobody(
    tmp_path: Path,
) -> None:
    rows = [f"{step},{2 + 0.01 * (step % 5)},{1 + 0.01 * (step % 3)},1" for step in range(40)]
    rows[30] = "30,9.0,1.0,1"
    run = opened(written(tmp_path / "log.csv", ["step,loss,grad_norm,executed", *rows]))
    assert set(column(run, "grad_norm_source")) == {"at_step"}
    [incident] = triage(diagnose(run))["incidents"]
    spike = next(finding for finding in incident["findings"] if finding["id"] == "loss_spike_clean_transition")
    assert spike["verdict"] == "cannot_tell"
    assert "perhaps after clipping" in spike["evidence"] or "not recorded" in spike["evidence"]


LIGHTNING = [
    "epoch,step,train_loss_epoch,train_loss_step,val_loss",
    "0,15,8.8,,",
    "3,49,,0.64,",
    "3,49,,,0.7",
    "4,99,,1.05,",
    "4,99,0.9,,",
]


def test_lightning_writes_of_a_step_on_several_rows(tmp_path: Path) -> None:
    for path in (tmp_path / "version_0", tmp_path / "version_0" / "metrics.csv"):
        written(tmp_path / "version_0" / "metrics.csv", LIGHTNING)
        run = opened(path)
        assert column(run, "step") == [49, 99]
        assert column(run, "loss") == [0.64, 1.05]
        assert column(run, "user_val_loss") == [0.7, None]
        assert column(run, "user_train_loss_epoch") == [None, 0.9]
        assert run.events[0]["train_loss_epoch"] == 8.8


def test_llama_factory_steps_are_the_trainers(tmp_path: Path) -> None:
    lines = [
        json.dumps({"current_steps": step, "total_steps": 60, "loss": 2.0, "lr": 1e-5, "epoch": step / 60})
        for step in (10, 20, 60)
    ]
    run = opened(
        written(tmp_path / "trainer_log.jsonl", [*lines, '{"current_steps": 60, "total_steps": 60, "epoch": 1.0}'])
    )
    assert column(run, "step") == [10, 20, 60]
    gap = next(check for check in triage(diagnose(run))["checks"] if check["id"] == "gap_in_log")
    assert gap["verdict"] in ("passed", "failed")


CHART = [
    '"Step",' + ",".join(f'"{run} - train/loss{edge}"' for run in "ab" for edge in ("", "__MIN", "__MAX")),
    '"0","2.5","2.5","2.5","3.5","3.5","3.5"',
    '"1","2.25","2.0","2.5","","",""',
]  # fmt: skip


def test_a_chart_of_several_runs_holds_each_of_them(tmp_path: Path) -> None:
    path = written(tmp_path / "chart.csv", CHART)
    assert runs_in(path) == ["a", "b"]
    first, other = open_run(path), open_run(path, asked=Asked(run="b"))
    assert (first.name, column(first, "loss")) == ("a", [2.5, 2.25])
    assert (other.name, column(other, "loss")) == ("b", [3.5])
    assert any("means of several steps on 1 row" in note for note in first.notes)
    assert any("the first of 2 runs here: --run NAME opens another (b)" in note for note in first.notes)
    with pytest.raises(RunError, match=r"holds no run c; it has a, b"):
        open_run(path, asked=Asked(run="c"))


def test_a_table_of_runs_is_refused_with_what_to_export_instead(tmp_path: Path) -> None:
    lines = ['"Name","State","Created","Runtime","train/loss"', '"G1","finished","2026-05-25","732","1.038"']
    with pytest.raises(RunError, match=r"a table of runs, one line a run, and holds no history; export a chart"):
        opened(written(tmp_path / "wandb.csv", lines))
