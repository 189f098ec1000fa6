"""`python -m recorder`: its exit statuses, and whether captures are whole, without torch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from recorder import statuses
from recorder.__main__ import main

SAMPLE = Path(__file__).parents[2] / "sample_runs" / "quadratic_divergence"


@pytest.fixture
def captured(tmp_path: Path) -> Path:
    """A copy of a run with one capture."""
    shutil.copytree(SAMPLE, tmp_path / "run")
    return tmp_path / "run" / "captures" / "row-000101"


def verified(capture: Path) -> Result:
    return CliRunner().invoke(main, ["verify", str(capture.parents[1])])


def test_a_whole_capture_is_counted_and_looked_at_without_torch(captured: Path) -> None:
    done = verified(captured)
    assert done.exit_code == 0
    assert "1 capture" in done.stdout
    code = (
        "import sys, pathlib; from recorder.captured import faults_of\n"
        f"assert not faults_of(pathlib.Path({str(captured)!r})) and 'torch' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("cut", "tensors.safetensors is damaged"),
        ("gone", "holds no tensors.safetensors"),
        ("torn", "cannot be read as a capture"),
        ("another", "holds row 7"),
        ("lacking", "lacks tensor"),
    ],
)
def test_a_damaged_capture_makes_a_run_less_than_whole(captured: Path, damage: str, said: str) -> None:
    tensors, facts = captured / "tensors.safetensors", captured / "capture.json"
    document = json.loads(facts.read_text())
    if damage == "cut":
        tensors.write_bytes(tensors.read_bytes()[:-10])
    elif damage == "gone":
        tensors.unlink()
    elif damage == "torn":
        facts.write_text(facts.read_text()[:100])
    else:
        document["facts"]["row"] = 7 if damage == "another" else 101
        document["contents"]["more"] = {"$tensor": "nowhere"} if damage == "lacking" else None
        facts.write_text(json.dumps(document))
    done = verified(captured)
    assert done.exit_code == 1
    assert said in done.stdout


def test_a_capture_that_was_taken_and_deleted_is_told_of(captured: Path) -> None:
    shutil.rmtree(captured)
    done = verified(captured)
    assert done.exit_code == 0
    assert "row-000101 was taken and is not there any more" in done.stdout


def test_what_goes_wrong_never_ends_with_the_status_of_an_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert statuses.run(main, ["verify", "no/such/run"]) == 2
    assert statuses.run(main, ["verify", str(SAMPLE), "--rank", "x"]) == 2
    assert statuses.run(main, ["verfy"]) == 2
    monkeypatch.setattr("recorder.upkeep.read_manifest", lambda run: 1 / 0)
    capsys.readouterr()
    assert statuses.run(main, ["verify", str(SAMPLE)]) == 3
    assert "a fault of its own: ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="closes the reading end of a pipe")
def test_a_closed_pipe_is_quiet_and_no_answer() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "recorder", "csv", str(SAMPLE.parent / "healthy")]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(("arguments", "status"), [([], 2), (["--help"], 0), (["csv", "--help"], 0)])
def test_help_is_help(arguments: list[str], status: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert statuses.run(main, arguments) == status
    told = capsys.readouterr()
    assert (told.out or told.err).startswith("Usage: recorder")


def interrupted(run: Path) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recorder.upkeep.read_manifest", interrupted)
    assert statuses.run(main, ["verify", str(SAMPLE)]) == 130
