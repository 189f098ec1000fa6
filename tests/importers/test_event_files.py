"""TensorBoard event files and local W&B runs: every value, whatever is damaged beside it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from spikeview.importers import Asked, RunError, open_run, runs_in
from spikeview.importers.places import places
from tests.importers.written import column, event, opened, records, wandb_file, written

VERSION = b"\x09" + bytes(8) + b"\x1a\x0dbrain.Event:2"


def tensorboard(path: Path, *events: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(records(VERSION, *events))
    return path


def scalars(first: int, last: int, value: float = 2.5, tensor: bool = False) -> list[bytes]:
    return [
        event(tag, step, value + step / 1000, tensor=tensor)
        for step in range(first, last)
        for tag in ("train/loss", "train/grad_norm")
    ]


@pytest.mark.parametrize("tensor", [False, True], ids=["PyTorch", "TensorFlow 2"])
def test_every_scalar_is_read_and_none_sampled(tensor: bool, tmp_path: Path) -> None:
    long = [event("a/" + "very/long/" * 20 + "tag", step, 1.0) for step in range(300)]
    run = opened(tensorboard(tmp_path / "events.out.tfevents.1.host", *scalars(0, 2000, tensor=tensor), *long))
    assert column(run, "step") == list(range(2000))
    assert column(run, "loss") == pytest.approx([2.5 + step / 1000 for step in range(2000)])
    assert column(run, "grad_norm") == pytest.approx(column(run, "loss"))
    assert run.values("time_ns")[0] == 1_700_000_000_000_000_000
    assert sum(value is not None for value in column(run, "user_a/" + "very/long/" * 20 + "tag")) == 300


def test_not_a_number_stays_one(tmp_path: Path) -> None:
    run = opened(
        tensorboard(
            tmp_path / "events.out.tfevents.1",
            *[event("loss", step, value) for step, value in enumerate((1.0, math.nan, math.inf))],
        )
    )
    assert str(column(run, "loss")) == "[1.0, nan, inf]"


def test_damaged_records_are_counted_and_the_others_read(tmp_path: Path) -> None:
    path = tensorboard(tmp_path / "events.out.tfevents.1", *scalars(0, 200))
    data = bytearray(path.read_bytes())
    frame = len(records(scalars(5, 6)[0]))
    at = data.index(scalars(5, 6)[0])
    data[at + 20] ^= 0xFF  # a value
    data[at + 40 * frame - 12] ^= 0xFF  # the length of another record
    path.write_bytes(bytes(data[:-10]))  # and the last one is being written
    run = opened(path)
    assert any("2 damaged records left out" in note for note in run.notes)
    assert len(run) == 200
    missing = sum(value is None for name in ("loss", "grad_norm") for value in column(run, name))
    assert missing == 3


def test_files_of_one_folder_are_one_run_and_a_restart_is_a_segment(tmp_path: Path) -> None:
    tensorboard(tmp_path / "run" / "events.out.tfevents.1", *scalars(0, 10))
    tensorboard(tmp_path / "run" / "events.out.tfevents.2", *scalars(6, 12))
    run = opened(tmp_path / "run")
    assert column(run, "step") == [*range(10), *range(6, 12)]
    assert column(run, "segment") == [0] * 10 + [1] * 6
    tensorboard(tmp_path / "other" / "events.out.tfevents.1", *scalars(0, 3))
    assert runs_in(tmp_path) == ["other", "run"]
    assert len(open_run(tmp_path, asked=Asked(run="other"))) == 3


def beneath(folder: Path) -> list[str]:
    """What a directory is taken for: `.` where it is one."""
    return [Path(place).relative_to(folder).as_posix() for place in places(str(folder))]


def test_event_files_with_what_their_writers_put_beside_them_are_one_place(tmp_path: Path) -> None:
    version = tmp_path / "lightning_logs" / "version_0"
    tensorboard(version / "events.out.tfevents.1", *scalars(0, 3))
    written(version / "hparams.yaml", "lr: 0.1\nloss: mse\n")
    written(version / "checkpoints" / "epoch=0-step=3.ckpt", "PK\x03\x04 weights")
    tensorboard(tmp_path / "lightning_logs" / "version_1" / "events.out.tfevents.1", *scalars(0, 3))
    assert beneath(version) == beneath(version.parent) == ["."]
    trainer = tmp_path / "output" / "runs" / "Jan01_00-00-00_host"
    tensorboard(trainer / "events.out.tfevents.1.host", *scalars(0, 3))
    tensorboard(trainer / "1700000000.5" / "events.out.tfevents.2.host", *scalars(0, 1))
    assert beneath(trainer) == beneath(trainer.parent) == ["."]
    written(version / "metrics.csv", "epoch,step,train_loss_step\n0,49,0.5\n")
    assert beneath(version) == ["."]
    assert opened(version).manifest["log"]["format"] == "Lightning metrics"


def test_a_directory_with_other_logs_beside_event_files_is_a_list(tmp_path: Path) -> None:
    tensorboard(tmp_path / "events.out.tfevents.1", *scalars(0, 3))
    written(tmp_path / "a.csv", "step,loss\n0,2.5\n")
    assert beneath(tmp_path) == ["a.csv", "events.out.tfevents.1"]
    tensorboard(tmp_path / "below" / "board" / "events.out.tfevents.1", *scalars(0, 3))
    written(tmp_path / "below" / "b.csv", "step,loss\n0,2.5\n")
    assert beneath(tmp_path / "below") == ["b.csv", "board"]
    assert beneath(tmp_path) == ["a.csv", "below/b.csv", "below/board", "events.out.tfevents.1"]


def test_tags_that_are_no_loss_are_shown_all_the_same(tmp_path: Path) -> None:
    path = tensorboard(tmp_path / "events.out.tfevents.1", *[event("linear_1", step, float(step)) for step in range(5)])
    assert column(opened(path), "user_linear_1") == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert column(opened(path, loss="linear_1"), "loss") == [0.0, 1.0, 2.0, 3.0, 4.0]
    with pytest.raises(RunError, match="holds no scalars"):
        opened(tensorboard(tmp_path / "b" / "events.out.tfevents.1"))


def test_a_wandb_file_is_read_without_the_service(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"train/loss": 2.0 + step, "train/grad_norm": 1.0, "note": "x" * 90} for step in range(900)
    ]
    rows[7]["train/loss"] = math.nan
    folder = tmp_path / "wandb" / "offline-run-20240101_000000-abc"
    folder.mkdir(parents=True)
    file = folder / "run-abc.wandb"
    file.write_bytes(wandb_file(rows))
    for path in (file, folder, tmp_path):
        run = opened(path)
        assert column(run, "step") == list(range(900))
        assert str(column(run, "loss")[6:9]) == "[8.0, nan, 10.0]"
    data = bytearray(file.read_bytes())
    data[50_000] ^= 0xFF
    file.write_bytes(bytes(data[:-20]))
    damaged = opened(folder)
    assert any("1 damaged record left out" in note for note in damaged.notes)
    assert 850 < len(damaged) < 900
