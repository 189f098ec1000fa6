"""The command line where the shell, the terminal or the run is unkind: one line, and the right status."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spikeview.cli import main

ROOT = Path(__file__).parents[2]
DRIFT = ROOT / "sample_runs" / "amp_clock_drift"

Captured = pytest.CaptureFixture[str]
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")


def shell(command: str, **choices: Any) -> subprocess.CompletedProcess[str]:
    """A line of shell with $spikeview in it."""
    environment = {**os.environ, "spikeview": f"{sys.executable} -m spikeview", "run": str(DRIFT)}
    return subprocess.run(
        ["/bin/sh", "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False, **choices
    )


def copied(tmp_path: Path, name: str = "run") -> Path:
    return Path(shutil.copytree(DRIFT, tmp_path / name))


@posix
@pytest.mark.parametrize(
    ("command", "status"), [("triage $run", 1), ("triage --json $run", 1), ("--help", 0), ("--version", 0)]
)
def test_a_closed_output_is_quiet(command: str, status: int) -> None:
    done = shell(f"$spikeview {command} >&-")
    assert (done.returncode, done.stderr) == (status, "")


@posix
def test_a_report_is_written_with_a_closed_output(tmp_path: Path) -> None:
    done = shell(f"$spikeview report $run -o {tmp_path}/x.md >&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "x.md").read_text().startswith("# ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("command", ["triage $run", "triage --json $run", "report $run -o /dev/null/x.md", "--help"])
def test_a_full_output_is_one_line(command: str) -> None:
    done = shell(f"$spikeview {command} >/dev/full")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "fault of its own" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_where_nothing_can_be_said_the_status_still_is() -> None:
    assert shell("$spikeview triage nowhere 2>/dev/full").returncode == 2


@posix
def test_ctrl_c_during_a_start_is_quiet(tmp_path: Path) -> None:
    # numpy is the first large import: this one, in its place, waits in the midst of it until it is interrupted
    (tmp_path / "numpy.py").write_text("import sys, time; print('here', flush=True); time.sleep(60)")
    process = subprocess.Popen(
        [sys.executable, "-m", "spikeview", "triage", str(DRIFT)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert (process.returncode, told) == (130, "")


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "/".join(["x" * 200] * 30), "a\x1b[31m"])
@pytest.mark.parametrize("command", ["triage", "report"])
def test_a_path_that_is_none_is_one_line(command: str, name: str, capsys: Captured, tmp_path: Path) -> None:
    output = ["-o", str(tmp_path / "x.md")] if command == "report" else []
    assert main([command, str(tmp_path / name), *output]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "\0" not in told
    assert "\x1b" not in told


@posix
def test_a_path_that_is_no_utf_8_is_a_path(tmp_path: Path) -> None:
    run = copied(tmp_path, os.fsdecode(b"caf\xe9"))
    for arguments in (["triage"], ["triage", "--json"]):
        done = subprocess.run(
            [sys.executable, "-m", "spikeview", *arguments, run], cwd=ROOT, capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (1, b"")
        assert rb"caf\udce9" in done.stdout
    report = ["report", run, "-o", run.with_name(run.name + ".html")]
    done = subprocess.run([sys.executable, "-m", "spikeview", *report], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"caf\udce9" in Path(report[-1]).read_bytes()


@pytest.mark.parametrize("command", ["triage", "report"])
def test_lone_surrogates_and_deep_json_are_no_fault(command: str, capsys: Captured, tmp_path: Path) -> None:
    run = copied(tmp_path)
    manifest = json.loads((run / "run.json").read_text())
    odd: dict[str, Any] = {"\ud800": "\ud800", "deep": json.loads("[" * 600 + "]" * 600)}
    (run / "run.json").write_text(json.dumps(manifest | odd))
    (run / "events.jsonl").write_text(json.dumps({"kind": "note", **odd}) + "\n")
    for suffix in ("html", "md", "json"):
        output = ["-o", str(tmp_path / f"x.{suffix}")] if command == "report" else []
        assert main([command, str(run), *output]) == (0 if output else 1)
    assert capsys.readouterr().err == ""


def test_a_run_is_called_by_its_directory(capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(copied(tmp_path))
    for path in (".", "./", "captures/..", "../run"):
        (Path("captures")).mkdir(exist_ok=True)
        assert main(["triage", path]) == 1
        assert capsys.readouterr().out.startswith("run  6 rows")
    assert main(["report", ".", "-o", "../x.md"]) == 0
    assert Path("../x.md").read_text().startswith("# run: 1 incident")


def test_a_report_leaves_the_run_alone(capsys: Captured, tmp_path: Path) -> None:
    run = copied(tmp_path)
    before = (run / "run.json").read_bytes()
    assert main(["report", str(run), "-o", str(run / "run.json")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert (run / "run.json").read_bytes() == before


def test_a_rank_can_be_chosen_and_the_others_are_told_of(capsys: Captured, tmp_path: Path) -> None:
    run = copied(tmp_path)
    shutil.copytree(run / "steps/rank=0", run / "steps/rank=2")
    shutil.copytree(run / "steps/rank=0", run / "steps/rank=3")
    assert main(["triage", str(run)]) == 1
    assert "note: ranks 2, 3 are not shown: only rank 0 is read" in capsys.readouterr().out
    assert main(["triage", str(run), "--rank", "2"]) == 1
    assert capsys.readouterr().out.startswith("run (rank 2)  6 rows")
    assert main(["triage", str(run), "--rank", "2", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["notes"] == ["ranks 0, 3 are not shown: only rank 2 is read"]
    assert told["incidents"][0]["first_bad"]["rank"] == 2
    assert main(["report", str(run), "--rank", "3", "-o", str(tmp_path / "x.md")]) == 0
    assert "ranks 0, 2 are not shown: only rank 3 is read" in (tmp_path / "x.md").read_text()
    capsys.readouterr()
    assert main(["triage", str(run), "--rank", "1"]) == 2
    assert "holds no rank 1, but ranks 0, 2, 3; choose one that is there" in capsys.readouterr().err


def test_a_run_of_another_rank_alone_is_read(capsys: Captured, tmp_path: Path) -> None:
    run = copied(tmp_path)
    (run / "steps/rank=0").rename(run / "steps/rank=1")
    assert main(["triage", str(run)]) == 1
    assert capsys.readouterr().out.startswith("run (rank 1)  6 rows")


def changed(run: Path, column: str, values: list[Any]) -> None:
    part = next((run / "steps/rank=0").glob("part-*.parquet"))
    table = pq.ParquetFile(part).read()
    place = table.column_names.index(column)
    pq.write_table(table.set_column(place, column, pa.array(values, table.schema.field(column).type)), part)


def test_rows_of_no_optimizer_are_told_of(capsys: Captured, tmp_path: Path) -> None:
    run = copied(tmp_path)
    changed(run, "optimizer", ["optimizer"] * 4 + [None] * 2)
    main(["triage", str(run)])
    assert "note: 2 rows name no optimizer and are left out" in capsys.readouterr().out
    changed(run, "optimizer", [None] * 6)
    assert main(["triage", str(run)]) == 1
    assert "name no optimizer" not in capsys.readouterr().out


def test_a_batch_is_shown_and_not_let_loose_on_the_terminal(capsys: Captured, tmp_path: Path) -> None:
    run = copied(tmp_path)
    changed(run, "batch_id", ["\x1b[31m\x07\u202e", "b", "x" * 100_000, "d", "e", "f"])
    assert main(["triage", str(run)]) == 1
    out = capsys.readouterr().out
    assert f"{'x' * 100}…\n(100,000 characters)" in out
    assert "x" * 101 not in out
    changed(run, "batch_id", ["\x1b[31m\x07\u202e"] * 6)
    assert main(["triage", str(run)]) == 1
    assert "batch \\x1b[31m\\x07\\u202e" in capsys.readouterr().out
