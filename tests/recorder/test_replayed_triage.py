"""What the columns of a run could not tell, a replay of its captured row does: from the loop to the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result
from safetensors.torch import save_file
from torch import nn
from torch.nn.functional import mse_loss

from recorder import CapturePolicy, above
from recorder.__main__ import main
from recorder.capture import captures_of, read_capture
from spikeview.cli import main as spikeview
from spikeview.importers import open_run
from spikeview.report.content import content
from spikeview.rules.diagnosis import Diagnosis, diagnose
from spikeview.rules.triage import triage
from spikeview.ui.captures import captures_of as inspected

ENTRY = """
from torch import nn
from torch.nn.functional import mse_loss
def loss(model, batch): return mse_loss(model(batch[0]), batch[1])
def build(): return nn.Linear(4, 1), loss
def other(): return nn.Linear(4, 1), lambda model, batch: 2 * loss(model, batch)
"""
CAPTURED = 80


@pytest.fixture
def captured(record: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recorded run with a capture, beside the module `entry_of_outlier`."""
    (tmp_path / "entry_of_outlier.py").write_text(ENTRY)
    monkeypatch.chdir(tmp_path)
    train(record)
    path: Path = record.path
    return path


def train(record: Any) -> None:
    """A loop that clips by itself, so that nobody knows the norms from before, with an outlier batch at row 80."""
    model, truth = nn.Linear(4, 1), torch.randn(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with record(model, optimizer, capture=CapturePolicy(triggers=[above("loss", 50.0)])) as recorder:
        for step in range(90):
            x, noise = torch.randn(16, 4), torch.randn(16, 1) * (30.0 if step == CAPTURED else 1.0)
            with recorder.transition(batch_id=step) as t:
                batch = (x, x @ truth + noise)
                t.observe_batch(batch)
                optimizer.zero_grad()
                loss = mse_loss(model(batch[0]), batch[1])
                t.observe_loss(loss)
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()


def replay(path: Path, *further: str, entry: str = "build") -> Result:
    entry = f"entry_of_outlier:{entry}"
    return CliRunner().invoke(main, ["replay", str(path), "--row", str(CAPTURED), "--entry", entry, *further])


def verdicts(diagnosis: Diagnosis) -> dict[str, str]:
    return {each["id"]: each["verdict"] for each in triage(diagnosis)["incidents"][0]["findings"]}


UNTOLD = ("loss_spike_clean_transition", "large_norm_tiny_coef")


def test_a_replay_decides_what_the_columns_could_not_tell(captured: Path) -> None:
    before = diagnose(open_run(captured))
    assert {verdicts(before)[rule] for rule in UNTOLD} == {"cannot_tell"}
    [capture] = triage(before)["incidents"][0]["captures"]
    assert capture["replay"] is None
    assert capture["command"] == f"python -m recorder replay {captured} --row 80 --entry package.module:build"

    assert inspected(before.run)[80].startswith("captured; to feed it again: python -m recorder replay")

    done = replay(captured)
    assert done.exit_code == 0, done.output
    after = diagnose(open_run(captured))
    assert inspected(after.run)[80].startswith("replayed: the recorded loss came out again; supports: the batch")
    assert {verdicts(after)[rule] for rule in UNTOLD} == {"matched"}
    assert verdicts(after)["loss_nonfinite"] == "ruled_out"
    [told] = content(after)["incidents"]
    assert "supports: the batch" in told["captured"][0]["summary"]
    assert "the replay of row 80 tells" in next(
        found["evidence"] for found in told["findings"]["matched"] if found["id"] == UNTOLD[0]
    )


def test_triage_leads_with_the_command_and_never_breaks_it(captured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = f"python -m recorder replay {captured} --row 80 --entry package.module:build"
    assert spikeview(["triage", str(captured)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines.index(f"    {command}") < next(at for at, line in enumerate(lines) if line.startswith("  first bad"))
    assert spikeview(["triage", "--markdown", str(captured)]) == 1
    assert f"again: `{command}`" in capsys.readouterr().out


def test_a_replay_that_does_not_reproduce_is_status_1_and_decides_nothing(captured: Path) -> None:
    before = verdicts(diagnose(open_run(captured)))
    done = replay(captured, entry="other")
    assert done.exit_code == 1, done.output
    assert "did not come out again" in done.output.splitlines()[1]
    assert "it is the batch" not in done.output  # no comparison is told as if it said something
    after = diagnose(open_run(captured))
    assert verdicts(after) == before
    assert "did not come out again" in content(after)["incidents"][0]["captured"][0]["summary"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"row": 7}, "is of row 7, not of this one"),
        ({"version": 2}, "has version 2, and this version reads up to 1: update spikeview"),
        ({"comparisons": [], "reproduced": None}, "holds no comparisons"),
        ({"comparisons": [{}], "reproduced": {}}, "holds no comparisons"),
    ],
)
def test_a_result_that_is_not_of_this_row_decides_nothing(captured: Path, changed: dict[str, Any], said: str) -> None:
    before = verdicts(diagnose(open_run(captured)))
    replay(captured)
    [path] = captured.glob("captures/*/replay.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    run = open_run(captured)
    assert [each.replay.problem for each in run.captures if each.replay] == [f"replay.json {said}"]
    assert verdicts(diagnose(run)) == before


def test_the_files_of_a_capture_are_no_logs(captured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replay(captured)
    [capture] = captured.glob("captures/row-*")
    for name in ("capture.json", "replay.json", "tensors.safetensors"):
        assert spikeview(["triage", str(capture / name)]) == 2
        assert f"is of a captured row, and no log; give the run directory, {captured}" in capsys.readouterr().err
    assert spikeview(["triage", str(captured / "captures")]) == 2


def test_a_followed_run_learns_of_a_replay(captured: Path) -> None:
    run = open_run(captured)
    assert run.refresh() is run
    replay(captured)
    newer = run.refresh()
    assert newer.captures[0].replay is not None
    assert newer.refresh() is newer


def test_each_line_of_a_replay_is_printed_once(captured: Path) -> None:
    lines = [line for line in replay(captured).output.splitlines() if line.strip()]
    assert len(lines) == len(set(lines))
    assert lines[1].startswith("the recorded loss came out again; supports: the batch")


def test_a_row_of_another_rank_is_replayed_by_its_rank(
    captured: Path, record: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (captured / "captures" / "row-000080").rename(captured / "captures" / "row-000070")  # of rank 0 another one
    monkeypatch.setenv("RANK", "3")
    train(record)
    refused = replay(captured)
    assert refused.exit_code == 2
    assert "captures of rank 3: give --rank" in refused.output
    [capture] = open_run(captured, rank=3).captures
    assert "--rank 3" in str(capture.command)
    assert replay(captured, "--rank", "3").exit_code == 0
    [capture] = open_run(captured, rank=3).captures
    assert capture.replay is not None


def test_the_state_is_judged_by_a_checkpoint_of_the_loops_own(captured: Path, tmp_path: Path) -> None:
    capture = captures_of(captured)[0]
    held = read_capture(capture).contents["parameters"]
    torch.save(
        {"step": 3, "state": {f"module.{name}": value * 0 for name, value in held.items()}}, tmp_path / "early.pt"
    )
    save_file({name: value.clone() for name, value in held.items()}, tmp_path / "same.safetensors")
    (tmp_path / "bad.pt").write_bytes(b"no checkpoint")
    given = [f"--checkpoint={tmp_path / name}" for name in ("early.pt", "same.safetensors", "bad.pt")]
    done = replay(captured, *given)
    assert done.exit_code == 0, done.output
    result = json.loads((capture / "replay.json").read_text())
    assert [each["label"] for each in result["states"]] == ["parameters of early.pt", "parameters of same.safetensors"]
    assert result["states"][1]["loss"] == result["as_recorded"]["loss"]
    assert result["states"][0]["loss"] != result["as_recorded"]["loss"]
    [unread] = result["not_evaluated"]
    assert "bad.pt: cannot be read" in unread
    missing = replay(captured, f"--checkpoint={tmp_path / 'none.pt'}")
    assert (missing.exit_code, "none.pt' does not exist" in missing.output) == (2, True)
