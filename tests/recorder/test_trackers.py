"""Rows and triggers also in a tracker: told off the training's thread, and never at its cost."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn.functional import mse_loss

from recorder import FlightRecorder
from recorder.store import read_run
from recorder.trackers import MLflow, TensorBoard, Told, WeightsAndBiases
from spikeview.importers import open_run


def train(path: Path, *trackers: Any, rows: int = 40, bad: int | None = 33) -> Any:
    torch.manual_seed(3)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with FlightRecorder(path, model, optimizer, max_norm=1.0, trackers=trackers) as recorder:
        for row in range(rows):
            x = torch.full((2, 4), float("nan")) if row == bad else torch.ones(2, 4)
            with recorder.transition(row) as t:
                optimizer.zero_grad()
                loss = mse_loss(model(x), torch.ones(2, 1))
                t.observe_loss(loss)
                loss.backward()
                t.clip_grad_norm_()
                if t.should_step:
                    optimizer.step()
    return read_run(path)


class Kept:
    """A tracker that keeps what it is told, and waits at the gate before it takes more."""

    def __init__(self, every: int = 10) -> None:
        self.every = every
        self.rows: list[Told] = []
        self.gate = threading.Event()
        self.gate.set()
        self.thread: Any = None
        self.run = ""
        self.is_closed = False

    def begin(self, run: str) -> None:
        self.run = run

    def tell(self, rows: Sequence[Told]) -> None:
        self.gate.wait()
        self.thread = threading.current_thread()
        self.rows += rows

    def close(self) -> None:
        self.is_closed = True


def test_every_tenth_row_is_told_and_each_with_which_a_trigger_trips(tmp_path: Path) -> None:
    kept = Kept()
    run = train(tmp_path / "run", kept)
    stored = run.table.to_pylist()
    triggers = {event["row"] for event in run.events if event["kind"] == "trigger"}
    assert 33 in triggers
    assert [row.row for row in kept.rows] == sorted({0, 10, 20, 30, *triggers})
    for row in kept.rows:
        cells = stored[row.row]
        assert row.step == cells["step"]
        assert row.values["spikeview/lr"] == cells["lr"]
        assert row.values["spikeview/loss"] == pytest.approx(cells["loss"], nan_ok=True)
        assert row.values["spikeview/skipped"] == cells["attempted_n"] - cells["executed_n"]
    assert kept.thread is not threading.current_thread()
    assert kept.run == str(tmp_path / "run")
    assert kept.is_closed


def test_the_trackers_of_several_optimizers_tell_them_apart(tmp_path: Path) -> None:
    kept = Kept(every=1)
    models = {name: torch.nn.Linear(2, 1) for name in ("critic", "generator")}
    optimizers = {name: torch.optim.SGD(model.parameters(), lr=0.1) for name, model in models.items()}
    both = torch.nn.ModuleDict(models)
    with FlightRecorder(tmp_path / "run", both, optimizers, trackers=[kept]) as recorder, recorder.transition():
        for optimizer in optimizers.values():
            optimizer.step()
    assert [{name.split("/")[1] for name in row.values} for row in kept.rows] == [{"critic"}, {"generator"}]


def test_a_broken_tracker_is_said_once_and_the_training_goes_on(tmp_path: Path) -> None:
    class Broken(Kept):
        def tell(self, rows: Sequence[Told]) -> None:
            raise ConnectionError("no route to the tracker")

    with pytest.warns(RuntimeWarning, match="Broken is told no more"):
        run = train(tmp_path / "run", Broken(every=1), rows=60)
    assert run.table.num_rows == 60
    assert len([event for event in run.events if "no route" in event.get("text", "")]) == 1


def test_a_slow_tracker_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recorder.telling._WAITING", 5)
    monkeypatch.setattr("recorder.telling._SECONDS_AT_THE_END", 0.05)
    slow = Kept(every=1)
    slow.gate.clear()
    run = train(tmp_path / "run", slow, rows=100)
    slow.gate.set()
    assert run.table.num_rows == 100
    assert any("did not take its rows" in event.get("text", "") for event in run.events)


def test_what_is_no_tracker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"recorder\.trackers"):
        train(tmp_path / "run", "logs")


def test_tensorboard_shows_what_the_run_holds(tmp_path: Path) -> None:
    """Written by a real SummaryWriter, and read back from its file."""
    writer = pytest.importorskip("tensorboardX")
    assert inspect.isclass(writer.SummaryWriter)
    run = train(tmp_path / "run", TensorBoard(tmp_path / "logs", every=4))
    shown = open_run(tmp_path / "logs")
    rows = run.table.to_pylist()
    triggers = {event["row"] for event in run.events if event["kind"] == "trigger"}
    told = [rows[row] for row in sorted({*range(0, 40, 4), *triggers})]
    assert shown.values("step").tolist() == [row["step"] for row in told]
    assert shown.values("loss").tolist() == pytest.approx([row["loss"] for row in told], nan_ok=True)


def test_weights_and_biases_keeps_its_own_steps(tmp_path: Path) -> None:
    class Run:
        def __init__(self) -> None:
            self.summary: dict[str, Any] = {}
            self.logged: list[dict[str, Any]] = []

        def log(self, data: dict[str, Any], step: int | None = None, commit: bool | None = None) -> None:
            assert step is None, "a step of its own would make W&B drop what the loop logs under an earlier one"
            assert commit is False
            self.logged.append(data)

    run = Run()
    train(tmp_path / "run", WeightsAndBiases(run))
    assert [data["spikeview/step"] for data in run.logged][:4] == [0, 10, 20, 30]
    assert run.summary["spikeview/run"] == str(tmp_path / "run")
    assert "nonfinite" in run.summary["spikeview/trigger"]


def test_mlflow_is_told_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        def __init__(self) -> None:
            self.tags: dict[str, str] = {}
            self.metrics: list[Any] = []

        def set_tag(self, run_id: str, key: str, value: str) -> None:
            self.tags[key] = value

        def log_batch(self, run_id: str, metrics: Sequence[Any] = ()) -> None:
            assert run_id == "abc"
            self.metrics += metrics

    class Metric:
        def __init__(self, key: str, value: float, timestamp: int, step: int) -> None:
            self.key, self.value, self.timestamp, self.step = key, value, timestamp, step

    monkeypatch.setitem(__import__("sys").modules, "mlflow.entities", SimpleNamespace(Metric=Metric))
    client = Client()
    train(tmp_path / "run", MLflow("abc", client=client))
    assert [m.step for m in client.metrics if m.key == "spikeview.loss"][:4] == [0, 10, 20, 30]
    assert client.tags["spikeview.run"] == str(tmp_path / "run")
    assert "nonfinite" in client.tags["spikeview.trigger"]


def test_a_tracker_whose_thread_is_ended_is_said_as_well(tmp_path: Path) -> None:
    class Ends(Kept):
        def tell(self, rows: Sequence[Told]) -> None:
            raise SystemExit(3)

    with pytest.warns(RuntimeWarning, match="Ends is told no more"):
        assert train(tmp_path / "run", Ends(every=1)).table.num_rows == 40


@pytest.mark.parametrize("every", ["10", None, 0, 2.5])
def test_a_cadence_that_is_no_number_of_rows_is_refused(tmp_path: Path, every: Any) -> None:
    with pytest.raises(TypeError, match=r"every="):
        train(tmp_path / "run", Kept(every))
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_writer_that_the_loop_closed_first_costs_nothing(tmp_path: Path) -> None:
    writer = pytest.importorskip("tensorboardX").SummaryWriter(str(tmp_path / "logs"))
    writer.close()
    assert train(tmp_path / "run", TensorBoard(writer, every=1)).table.num_rows == 40
