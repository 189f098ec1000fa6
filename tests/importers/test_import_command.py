"""`spikeview import`, and what every command takes of a foreign log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spikeview.cli import main
from spikeview.importers import open_run
from spikeview.meaning import Meaning, meaning
from tests.importers.test_detection import TEXTS
from tests.importers.test_tables import CHART
from tests.importers.written import column, event, records, written

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize("log", [*TEXTS, "TensorBoard events", "a long log", "odd values"])
def test_an_imported_run_reads_back_equal(log: str, tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "source"
    if log == "TensorBoard events":
        path.write_bytes(
            records(*[event("train/loss", step % 40, float("nan") if step == 7 else 1.0) for step in range(60)])
        )
    elif log == "a long log":
        written(path, ["step,loss,note", *(f"{step},{2 + step % 7},x{step % 3}" for step in range(70_000))])
    elif log == "odd values":
        written(
            path,
            [
                '{"step": 1, "loss": Infinity, "naïve": true}',
                '{"step": 2, "val_loss": NaN}',
                '{"step": 1, "loss": 1e400}',
                "{",
            ],
        )
    else:
        written(path, TEXTS[log])
    assert main(["import", str(path), "-o", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'run'}\n"
    source, again = open_run(path), open_run(tmp_path / "run")
    assert again.table.schema.equals(source.table.schema)
    assert [str(again.table[name].to_pylist()) for name in again.table.column_names] == [
        str(source.table[name].to_pylist()) for name in source.table.column_names
    ]
    assert (again.manifest, list(again.events), again.rewinds) == (source.manifest, list(source.events), source.rewinds)
    assert list(again.notes) == list(source.notes)


def test_what_the_numbers_mean_goes_with_the_run(tmp_path: Path) -> None:
    main(["import", str(written(tmp_path / "log", TEXTS["a Megatron log"])), "-o", str(tmp_path / "run")])
    loss = Meaning("lm loss", over="mean", update="before", ranks="all", nonfinite="hidden")
    assert meaning(open_run(tmp_path / "run"), "loss") == loss


def test_what_is_there_already_is_not_touched(tmp_path: Path, capsys: Captured) -> None:
    path = written(tmp_path / "log.csv", TEXTS["CSV"])
    kept = written(tmp_path / "folder" / "mine.txt", "mine")
    for place in (path, kept.parent):
        assert main(["import", str(path), "-o", str(place)]) == 2
        assert "is there already" in capsys.readouterr().err
    assert kept.read_text() == "mine"
    assert main(["import", str(path), "-o", str(tmp_path / "run")]) == 0
    assert main(["import", str(tmp_path / "run"), "-o", str(tmp_path / "again")]) == 2
    assert "is a run directory already" in capsys.readouterr().err


def test_several_runs_are_triaged_each_and_imported_by_name(tmp_path: Path, capsys: Captured) -> None:
    path = str(written(tmp_path / "chart.csv", CHART))
    assert main(["triage", path, "--json"]) == 0
    assert [run["run"] for run in json.loads(capsys.readouterr().out)["runs"]] == [f"{path}/a", f"{path}/b"]
    assert main(["triage", path, "--json", "--run", "b"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 1
    assert main(["import", path, "-o", str(tmp_path / "run")]) == 2
    assert "holds 2 runs; choose one with --run NAME: a, b" in capsys.readouterr().err
    assert main(["import", path, "-o", str(tmp_path / "run"), "--run", "b"]) == 0
    assert column(open_run(tmp_path / "run"), "loss") == [3.5]


def test_a_mapping_is_taken_by_every_command_and_a_wrong_one_is_one_line(tmp_path: Path, capsys: Captured) -> None:
    path = str(written(tmp_path / "log.csv", ["step,quality,aux", *(f"{step},2.5,1.5" for step in range(30))]))
    assert main(["triage", path, "--map", "loss=quality", "--map", "grad_norm=aux"]) == 0
    assert "loss = quality; pre-clip norm = aux" in " ".join(capsys.readouterr().out.split())
    assert main(["import", path, "-o", str(tmp_path / "run"), "--map", "loss=aux"]) == 0
    assert set(column(open_run(tmp_path / "run"), "loss")) == {1.5}
    capsys.readouterr()
    for wrong, says in (
        ("loss", "is no COLUMN=NAME"),
        ("los=aux", "a run has no column los"),
        ("loss=x", "the log has no x"),
    ):
        assert main(["triage", path, "--map", wrong]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert says in told
