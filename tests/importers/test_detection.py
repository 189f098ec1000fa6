"""What a path holds is found by what is in it; where nothing fits, one line says why."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from spikeview.cli import main
from spikeview.importers import RunError, open_run
from spikeview.importers.formats import IMPORTERS
from tests.importers.written import event, records, wandb_file, written

TEXTS = {
    "a Hugging Face log": json.dumps({"log_history": [{"loss": 1.0, "step": 1}]}),
    "a LLaMA-Factory log": '{"current_steps": 10, "total_steps": 60, "loss": 2.0}\n',
    "Lightning metrics": "epoch,step,train_loss_step\n0,49,0.5\n",
    "a W&B chart": '"Step","a - loss"\n"0","2.5"\n',
    "a Megatron log": " iteration        1/      10 | lm loss: 1.0E+00 | number of skipped iterations:   0 |\n",
    "a fairseq log": '2021 | INFO | train_inner | {"loss": "1.5", "num_updates": "1"}\n',
    "a nanoGPT log": "iter 0: loss 4.4512, time 23218.37ms, mfu -100.00%\n",
    "a modded-nanogpt log": "step:1/5100 train_loss:16.0026 train_time:42703ms step_avg:nanms\n",
    "an llm.c log": "s:0 trl:10.9656\n",
    "a printed Hugging Face log": "{'loss': 2.0, 'learning_rate': 1e-05, 'epoch': 0.5}\n",
    "a DeepSpeed log": "[Rank 0] step=10, skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]\n",
    "JSON lines": '{"step": 1, "loss": 2.5}\n',
    "CSV": "step,loss\n0,2.5\n",
}


@pytest.mark.parametrize("log", TEXTS)
def test_a_format_is_found_by_content_whatever_the_file_is_called(log: str, tmp_path: Path) -> None:
    noise = (
        ""
        if log in ("a Hugging Face log", "Lightning metrics", "a W&B chart", "JSON lines", "CSV", "a LLaMA-Factory log")
        else "hello\n" * 50
    )
    run = open_run(written(tmp_path / "file", noise + TEXTS[log]))
    assert run.manifest["log"]["format"] == log
    assert len(run) == 1


def test_binary_formats_are_found_by_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(records(event("loss", 1, 2.0)))
    (tmp_path / "b").write_bytes(wandb_file([{"loss": 2.0}]))
    assert [open_run(tmp_path / name).manifest["log"]["format"] for name in "ab"] == [
        "TensorBoard events",
        "a local W&B run",
    ]


@pytest.mark.parametrize("command", ["triage", "report"])
def test_where_nothing_fits_every_importer_says_why_in_one_line(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "notes.txt", "nothing to see here\n" * 20)
    assert main([command, str(path), *(["-o", str(tmp_path / "x.html")] if command == "report" else [])]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert len(told) < 800
    for importer in IMPORTERS:
        assert importer.name in told


def test_a_pointer_of_git_lfs_is_named(tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n"
    for path in (
        written(tmp_path / "log.csv", pointer),
        written(tmp_path / "out" / "trainer_state.json", pointer).parent,
    ):
        with pytest.raises(RunError, match=r"is a Git LFS pointer, not the file itself; run `git lfs pull`"):
            open_run(path)


def test_a_damaged_log_is_a_run_or_one_line(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    samples = [text.encode() * 30 for text in TEXTS.values()]
    samples += [records(*[event("loss", step, 2.0) for step in range(50)]), wandb_file([{"loss": 2.0}] * 50)]
    told: list[str] = []
    for data in samples:
        for _ in range(12):
            damaged = bytearray(data[: int(random.integers(1, len(data) + 1))])
            for at in random.integers(0, len(damaged), 8):
                damaged[at] = random.integers(0, 256)
            (tmp_path / "log").write_bytes(bytes(damaged))
            try:
                assert len(open_run(tmp_path / "log"))
            except RunError as error:
                told.append(str(error))
    assert told
    assert "\n" not in "".join(told)
