"""The recorder changes nothing and ends nothing: what training would be without it, it is with it."""

from __future__ import annotations

import copy
import io
import pickle
import shutil
import subprocess
import sys
import warnings
from typing import Any

import pytest
import torch
from torch.nn.functional import mse_loss

from recorder.store import StoreError, read_run


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, recorder: Any, steps: int) -> None:
    generator = torch.Generator().manual_seed(2)
    device = next(model.parameters()).device
    for step in range(steps):
        x = torch.randn(8, 8, generator=generator).to(device)
        optimizer.zero_grad()
        if recorder is None:
            loss = mse_loss(model(torch.nn.functional.dropout(x, 0.1)), x.sum(1, keepdim=True))
            loss.backward()
            optimizer.step()
            continue
        with recorder.transition(batch_id=step) as t:
            loss = mse_loss(model(torch.nn.functional.dropout(x, 0.1)), x.sum(1, keepdim=True))
            t.observe_inputs(x)
            t.observe_loss(loss)
            loss.backward()
            t.measure_grad_norm()
            optimizer.step()


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
@pytest.mark.parametrize("fused", [True, False])
def test_two_hundred_steps_are_bit_identical_with_and_without(record: Any, mlp: Any, kind: Any, fused: bool) -> None:
    plain, watched = mlp(), mlp()
    torch.manual_seed(4)
    train(plain, kind(plain.parameters(), lr=1e-2, fused=fused), None, 200)
    torch.manual_seed(4)
    optimizer = kind(watched.parameters(), lr=1e-2, fused=fused)
    with record(watched, optimizer, deep_every=7) as recorder:
        train(watched, optimizer, recorder, 200)
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), watched.parameters(), strict=True))
    assert len(record.rows()) == 200


def test_the_model_can_be_copied_and_saved_inside_a_deep_transition(record: Any, mlp: Any, batches: Any) -> None:
    model = mlp()
    averaged = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(model, optimizer, deep_every=1) as recorder:
        for x, y in batches(2):
            with recorder.transition() as t:
                loss = mse_loss(model(x), y)
                t.observe_loss(loss)
                loss.backward()
                optimizer.step()
                averaged.update_parameters(model)
                copy.deepcopy(model)
                torch.save(model, io.BytesIO())
                torch.save(optimizer.state_dict(), io.BytesIO())
                pickle.dumps(optimizer)
    assert len(record.rows()) == 2


def test_the_loops_own_exception_passes_with_its_row_written(record: Any, mlp: Any) -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loop(recorder: Any) -> None:
        with recorder.transition(batch_id="last") as t:
            t.observe_loss(3.0)
            raise KeyError("mine")

    with record(model, optimizer) as recorder, pytest.raises(KeyError, match="mine"):
        loop(recorder)
    [row] = record.rows()
    assert (row["batch_id"], row["loss"], row["attempted"]) == ("last", 3.0, False)
    [event] = record.events("exception")
    assert event["text"].startswith("KeyError")


def test_a_fault_of_the_recorder_is_warned_about_once_and_noted(
    record: Any, mlp: Any, batches: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: Any, **_settings: Any) -> None:
        raise OSError("no space left on device")

    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorder = record(model, optimizer, max_norm=1.0)
    monkeypatch.setattr("recorder.channel.gradients.gradient_norms", broken)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for x, y in batches(3):
            with recorder.transition() as t:
                optimizer.zero_grad()
                mse_loss(model(x), y).backward()
                norm = t.clip_grad_norm_()
                after = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
                optimizer.step()
        recorder.close()
    assert len([w for w in caught if "no space left" in str(w.message)]) == 1
    assert float(norm) > 1.0 >= float(after) - 1e-5
    rows = record.rows()
    assert [row["executed"] for row in rows] == [True] * 3
    assert rows[0]["grad_norm"] is None
    assert len(record.events("recorder_fault")) == 1


def test_a_warning_that_is_an_error_does_not_end_the_training(
    record: Any, mlp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(model, optimizer) as recorder, warnings.catch_warnings():
        warnings.simplefilter("error")
        with recorder.transition() as t:
            t.observe_loss(torch.ones(3))
    assert record.column("loss") == [None]
    assert "scalar" in record.events("recorder_fault")[0]["text"]


@pytest.mark.filterwarnings("ignore:the flight recorder met a fault")
def test_a_directory_removed_while_running(record: Any, mlp: Any, batches: Any) -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorder = record(model, optimizer)
    for index, (x, y) in enumerate(batches(4)):
        if index == 2:
            while record.path.exists():  # the recorder may put a file there meanwhile
                shutil.rmtree(record.path, ignore_errors=True)
        with recorder.transition():
            mse_loss(model(x), y).backward()
            optimizer.step()
    recorder.close()


def test_after_close_the_loop_goes_on_unwatched(record: Any, mlp: Any, batches: Any) -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    recorder = record(model, optimizer, scaler=scaler)
    recorder.close()
    recorder.close()
    for x, y in batches(2):
        with recorder.transition() as t:
            loss = mse_loss(model(x), y)
            t.observe_loss(loss)
            loss.backward()
            t.clip_grad_norm_(1.0)
            optimizer.step()
    assert not {"step", "scale", "update"} & set(vars(scaler))
    assert record.rows() == []


def test_an_existing_run_is_refused(record: Any, mlp: Any) -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(model, optimizer) as recorder, recorder.transition():
        pass
    with pytest.raises(StoreError, match="resume=True"):
        record(model, optimizer)


def test_a_loop_that_failed_before_its_first_row_is_run_again(record: Any, mlp: Any, batches: Any) -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ZeroDivisionError), record(model, optimizer, config={"attempt": 1}):
        _ = 1 / 0  # as where the data cannot be opened
    with record(model, optimizer, config={"attempt": 2}) as recorder:
        for x, y in batches(3):
            with recorder.transition() as t:
                loss = mse_loss(model(x), y)
                t.observe_loss(loss)
                loss.backward()
                optimizer.step()
    assert record.column("row") == [0, 1, 2]
    assert set(record.column("segment")) == {0}
    assert record.events("exception") == []
    assert read_run(record.path).manifest["config"] == {"attempt": 2}


def test_a_recorder_that_could_not_be_made_leaves_its_directory_to_the_next(record: Any, mlp: Any) -> None:
    class Unwatched(torch.optim.SGD):
        def register_step_post_hook(self, hook: Any) -> Any:
            raise RuntimeError("no hooks here")

    model = mlp()
    with pytest.raises(RuntimeError, match="no hooks here"):
        record(model, Unwatched(model.parameters(), lr=0.1))
    with record(model, torch.optim.SGD(model.parameters(), lr=0.1)) as recorder, recorder.transition():
        pass
    assert record.column("row") == [0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"deep_every": -1}, "deep_every"),
        ({"deep_every": "often"}, "deep_every"),
        ({"max_norm": {"critic": 1.0}}, "critic"),
    ],
)
def test_settings_that_contradict_are_refused(record: Any, mlp: Any, settings: dict[str, Any], message: str) -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ValueError, match=message):
        record(model, optimizer, **settings)


def test_clipping_two_optimizers_at_once_says_what_to_do(record: Any, mlp: Any) -> None:
    model = mlp()
    optimizers = {n: torch.optim.SGD(model[i].parameters(), lr=0.1) for n, i in (("a", 0), ("b", 2))}
    with (
        record(model, optimizers) as recorder,
        recorder.transition() as t,
        pytest.raises(ValueError, match=r"t\.of\(name\)\.clip_grad_norm_"),
    ):
        t.clip_grad_norm_()


def test_a_tensor_as_batch_id_and_odd_seeds(record: Any, mlp: Any, device: str) -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(model, optimizer) as recorder:
        torch.manual_seed(2**63 + 5)
        with recorder.transition(batch_id=torch.tensor([3, 4], device=device)):
            pass
    [row] = record.rows()
    assert row["batch_id"] == "[3,4]"
    assert row["rng_seed"] == 2**63 + 5 - 2**64


LOOP = """
import sys, torch
from recorder import FlightRecorder
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
recorder = FlightRecorder(sys.argv[1], model, optimizer)
for step in range(5):
    with recorder.transition(batch_id=step) as t:
        loss = model(torch.ones(2, 4)).square().mean()
        t.observe_loss(loss)
        loss.backward()
        optimizer.step()
    if step == 3 and sys.argv[2] == "exit":
        sys.exit(3)
    if step == 3 and sys.argv[2] == "raise":
        raise RuntimeError("the loop's own")
    if step == 3 and sys.argv[2] == "kill":
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
    if step == 3 and sys.argv[2] == "terminate":
        import os, signal
        os.kill(os.getpid(), signal.SIGTERM)
    if step == 3 and sys.argv[2] == "interrupt":
        import os, signal
        os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("ending", ["exit", "raise", "kill", "terminate", "interrupt"])
def test_a_process_that_ends_without_close_leaves_every_row(record: Any, ending: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOP, str(record.path), ending], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert [row["batch_id"] for row in record.rows()] == ["0", "1", "2", "3"]
    assert all(row["executed"] for row in record.rows())


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_data_loader_workers_leave_the_run_alone(record: Any, start: str) -> None:
    """Forked workers inherit the open journal; they neither write to it nor close it."""
    data = torch.utils.data.TensorDataset(torch.randn(24, 4))
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(model, optimizer) as recorder:
        for _ in range(2):
            loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, multiprocessing_context=start)
            for (x,) in loader:
                with recorder.transition() as t:
                    loss = model(x).square().mean()
                    t.observe_loss(loss)
                    loss.backward()
                    optimizer.step()
    assert record.column("row") == list(range(6))
    assert record.column("executed_n") == [1, 2, 3, 4, 5, 6]


def test_the_exception_of_a_worker_is_an_event_of_the_run(record: Any) -> None:
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loop() -> None:
        with record(model, optimizer) as recorder:
            with recorder.transition():
                pass
            raise RuntimeError("Caught ValueError in DataLoader worker process 0")

    with pytest.raises(RuntimeError, match="DataLoader worker"):
        loop()
    [event] = record.events("exception")
    assert "DataLoader worker process 0" in event["text"]
    assert record.column("row") == [0]
