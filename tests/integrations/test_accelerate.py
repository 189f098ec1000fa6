"""Loops that go through an Accelerator, row by row against the same loop written by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("accelerate", reason="needs the extra [accelerate]")

from accelerate import Accelerator  # noqa: E402  # after the skip
from accelerate.state import AcceleratorState, GradientState  # noqa: E402  # after the skip

from recorder.integrations.accelerate import follow  # noqa: E402  # after the skip
from recorder.store import read_run  # noqa: E402  # after the skip
from spikeview.rules.finding import Outcome  # noqa: E402  # after the skip
from tests.integrations.by_hand import Pieces, by_hand, loss_of  # noqa: E402  # after the skip
from tests.integrations.conftest import differences, resume_incomplete  # noqa: E402  # after the skip


@pytest.fixture(autouse=True)
def _accelerators_own_state() -> Iterator[None]:
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()


def prepared(accelerator: Accelerator, fused: bool = False) -> tuple[Any, Any, Any, Any]:
    pieces = Pieces(fused)
    done: tuple[Any, Any, Any, Any] = accelerator.prepare(
        pieces.model, pieces.optimizer, pieces.scheduler, pieces.loader
    )
    return done


def accelerated(run: Path | None, accelerator: Accelerator, epochs: int = 1, **how: Any) -> Any:
    """A loop as Accelerate's own examples have it. Returns the model."""
    model, optimizer, scheduler, loader = prepared(accelerator, how.get("fused", False))
    if run is not None:
        follow(accelerator, run, model, optimizer, scheduler, deep_every=1)  # the one line
    for _ in range(epochs):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = loss_of(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients and how.get("max_norm"):
                    accelerator.clip_grad_norm_(model.parameters(), how["max_norm"])
                if accelerator.sync_gradients and how.get("clip_value"):
                    accelerator.clip_grad_value_(model.parameters(), how["clip_value"])
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
    accelerator.end_training()
    return model


PLANS: dict[str, dict[str, Any]] = {
    "norm": {"max_norm": 0.5},
    "value": {"clip_value": 0.01},
    "accumulation": {"max_norm": 0.5, "epochs": 2},
    "bf16": {"max_norm": 0.5},
}


@pytest.mark.parametrize("plan", PLANS)
def test_rows_are_those_of_the_loop_written_by_hand(tmp_path: Path, rows: Any, plan: str) -> None:
    how, every = PLANS[plan], 4 if plan == "accumulation" else 1
    settings = {"cpu": True, "gradient_accumulation_steps": every}
    if plan == "bf16":
        settings["mixed_precision"] = "bf16"
    accelerated(tmp_path / "run", Accelerator(**settings), **how)
    dtype = torch.bfloat16 if plan == "bf16" else None
    found = rows(tmp_path / "run")
    assert differences(found, rows(by_hand(tmp_path / "hand", every, dtype=dtype, **how))) == []
    assert found[-1]["executed_n"] == found[-1]["scheduled_n"] == (6 if plan == "accumulation" else 10)
    assert len(found) == (20 if plan == "accumulation" else 10)
    assert found[0]["max_norm"] == (None if every > 1 or plan == "value" else 0.5)


def adversaries(accelerator: Accelerator, run: Path) -> tuple[Any, ...]:
    """Two models with an optimizer each and a loader, prepared and followed; and the recorder."""
    pieces = torch.nn.ModuleDict({"generator": torch.nn.Linear(4, 4), "critic": torch.nn.Linear(4, 1)})
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in pieces.values()]
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(12, 4)), 4)
    generator, critic, its, own, loader = accelerator.prepare(*pieces.values(), *optimizers, loader)
    recorder = follow(accelerator, run, pieces, {"generator": its, "critic": own})
    return generator, critic, its, own, loader, recorder


@pytest.mark.parametrize("together", [False, True])
def test_of_several_models_each_optimizer_has_the_loss_of_its_own(
    tmp_path: Path, rows: Any, events: Any, together: bool
) -> None:
    accelerator = Accelerator(cpu=True)
    generator, critic, its, own, loader, recorder = adversaries(accelerator, tmp_path / "run")
    seen: dict[str, list[float]] = {"critic": [], "generator": []}

    def turn(name: str, optimizer: Any, x: Any) -> None:
        loss = (critic(generator(x)) ** 2).mean() * (1 if name == "critic" else -1)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        seen[name].append(loss.item())

    for (x,) in loader:
        with accelerator.accumulate(generator, critic) if together else accelerator.accumulate(critic):
            turn("critic", own, x)
            if together:
                turn("generator", its, x)
        if not together:
            with accelerator.accumulate(generator):
                turn("generator", its, x)
    recorder.close()
    found = rows(tmp_path / "run")
    for name, losses in seen.items():
        mine = [row for row in found if row["optimizer"] == name]
        assert [row["loss"] for row in mine if row["executed"]] == losses
        assert [row["loss"] for row in mine if not row["executed"]] == ([] if together else [None] * 3)
        assert [row["batch_id"] for row in mine if row["executed"]] == ["0:0", "0:1", "0:2"]
    assert events(tmp_path / "run", "note") == []


def test_an_accelerator_that_is_followed_already_is_refused(tmp_path: Path, rows: Any) -> None:
    accelerator = Accelerator(cpu=True)
    model, optimizer, scheduler, _ = prepared(accelerator)
    first = follow(accelerator, tmp_path / "run", model, optimizer, scheduler)
    with pytest.raises(ValueError, match="followed already"):
        follow(accelerator, tmp_path / "other", model, optimizer, scheduler)
    assert not (tmp_path / "other").exists()
    first.close()
    follow(accelerator, tmp_path / "other", model, optimizer, scheduler).close()


def test_a_load_that_fails_is_no_resume(tmp_path: Path, rows: Any, events: Any) -> None:
    accelerator = Accelerator(cpu=True)
    model, optimizer, scheduler, loader = prepared(accelerator)
    recorder = follow(accelerator, tmp_path / "run", model, optimizer, scheduler)
    (tmp_path / "empty").mkdir()
    for index, (x, y) in enumerate(loader):
        if index == 3:
            with pytest.raises(FileNotFoundError):
                accelerator.load_state(str(tmp_path / "empty"))
        with accelerator.accumulate(model):
            accelerator.backward(loss_of(model(x), y))
            optimizer.step()
    recorder.close()
    assert events(tmp_path / "run", "resume") == []
    assert [row["batch_id"] for row in rows(tmp_path / "run")] == [f"0:{index}" for index in range(10)]


@pytest.mark.parametrize("fused", [False, True])
def test_fp16_where_accelerates_own_word_is_wrong(tmp_path: Path, rows: Any, fused: bool) -> None:
    accelerator = Accelerator(cpu=True, mixed_precision="fp16")
    scale = {"init_scale": 2.0**20}
    accelerator.scaler, accelerator.native_amp = torch.amp.GradScaler("cpu", **scale), True
    accelerated(tmp_path / "run", accelerator, max_norm=0.5, fused=fused)
    scaler = torch.amp.GradScaler("cpu", **scale)
    hand = by_hand(tmp_path / "hand", dtype=torch.float16, scaler=scaler, max_norm=0.5, fused=fused)
    found = rows(tmp_path / "run")
    assert differences(found, rows(hand)) == []
    declined = sum(row["skip_reason"] == "amp_overflow" for row in found)
    assert 0 < declined < 10
    assert found[-1]["executed_n"] == 10 - declined
    assert found[-1]["scheduled_n"] == (10 if fused else 10 - declined)


def test_weights_are_the_same_bit_for_bit(tmp_path: Path) -> None:
    ended = []
    for run in (None, tmp_path / "run"):
        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=3)
        ended.append(accelerated(run, accelerator, max_norm=0.5, epochs=2).state_dict())
        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()
    assert all(torch.equal(ended[0][name], ended[1][name]) for name in ended[0])


def test_a_loop_without_accumulate_has_a_row_for_every_backward(tmp_path: Path, rows: Any, events: Any) -> None:
    accelerator = Accelerator(cpu=True)
    model, optimizer, scheduler, loader = prepared(accelerator)
    recorder = follow(accelerator, tmp_path / "run", model, optimizer, scheduler, deep_every=1)
    for x, y in loader:
        optimizer.zero_grad()
        accelerator.backward(loss_of(model(x), y))
        optimizer.step()
        scheduler.step()
    recorder.close()
    found = rows(tmp_path / "run")
    beside = ("precision", "activation_absmax", "nonfinite_buffers", "grad_norm_source")
    assert differences(found, rows(by_hand(tmp_path / "hand")), beside) == []
    assert {(row["precision"], row["grad_norm_source"]) for row in found} == {(None, "at_step")}
    assert len([note for note in events(tmp_path / "run", "note") if "not recorded" in note["text"]]) == 1
    assert "backward" not in vars(accelerator)


def test_the_loops_own_transitions_are_the_rows(tmp_path: Path, rows: Any) -> None:
    accelerator = Accelerator(cpu=True)
    model, optimizer, scheduler, loader = prepared(accelerator)
    with follow(accelerator, tmp_path / "run", model, optimizer, scheduler, deep_every=1) as recorder:
        for index, (x, y) in enumerate(loader):
            with recorder.transition(f"0:{index}"):
                accelerator.backward(loss_of(model(x), y))
                accelerator.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
    assert differences(rows(tmp_path / "run"), rows(by_hand(tmp_path / "hand", max_norm=0.5))) == []


def test_the_loops_own_transitions_around_accumulate(tmp_path: Path, rows: Any) -> None:
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    model, optimizer, scheduler, loader = prepared(accelerator)
    with follow(accelerator, tmp_path / "run", model, optimizer, scheduler, deep_every=1) as recorder:
        for index, (x, y) in enumerate(loader):
            with recorder.transition(batch_id=f"0:{index}"), accelerator.accumulate(model):
                accelerator.backward(loss_of(model(x), y))
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
    assert differences(rows(tmp_path / "run"), rows(by_hand(tmp_path / "hand", 4, max_norm=0.5))) == []


def test_two_optimizers_that_step_in_turn_share_a_row(tmp_path: Path, rows: Any) -> None:
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(1)
    nets = {"critic": torch.nn.Linear(4, 1), "generator": torch.nn.Linear(4, 4)}
    optimizers = {name: torch.optim.SGD(net.parameters(), lr=0.1) for name, net in nets.items()}
    both = torch.nn.ModuleDict(nets)
    nets = {name: accelerator.prepare(net) for name, net in nets.items()}
    optimizers = {name: accelerator.prepare(optimizer) for name, optimizer in optimizers.items()}
    losses: dict[str, list[float]] = {"critic": [], "generator": []}
    with follow(accelerator, tmp_path / "run", both, optimizers):
        for _ in range(3):
            noise = torch.randn(2, 4)
            for name in ("critic", "generator"):
                optimizers[name].zero_grad()
                loss = (nets["critic"](nets["generator"](noise)) ** 2).mean() * (1 if name == "critic" else -1)
                losses[name].append(loss.item())
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(nets[name].parameters(), 0.1)
                optimizers[name].step()
    found = rows(tmp_path / "run")
    for name in losses:
        own = [row for row in found if row["optimizer"] == name]
        assert [row["loss"] for row in own] == losses[name]
        assert [row["row"] for row in own] == [0, 1, 2]
        assert all(row["clip_coef"] < 1 and row["grad_norm_source"] == "recorder" for row in own)


def test_a_checkpoint_that_is_saved_and_loaded(tmp_path: Path, rows: Any, events: Any) -> None:
    def train(resume: bool) -> None:
        accelerator = Accelerator(cpu=True)
        model, optimizer, scheduler, loader = prepared(accelerator)
        recorder = follow(accelerator, tmp_path / "run", model, optimizer, scheduler, resume=resume)
        if resume:
            accelerator.load_state(str(tmp_path / "saved"))
            loader = accelerator.skip_first_batches(loader, 6)
        for index, (x, y) in enumerate(loader):
            with accelerator.accumulate(model):
                accelerator.backward(loss_of(model(x), y))
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if index == 5 and not resume:
                accelerator.save_state(str(tmp_path / "saved"))
        recorder.close()
        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()

    train(False)
    train(True)
    found = rows(tmp_path / "run")
    assert [row["batch_id"] for row in found] == [f"0:{n}" for n in (*range(10), *range(6, 10))]
    assert [row["loss"] for row in found[10:]] == [row["loss"] for row in found[6:10]]
    for name in ("lr", "step", "attempted_n", "executed_n", "scheduled_n"):
        assert [row[name] for row in found[10:]] == [row[name] for row in found[6:10]], name
    [saved], [loaded] = events(tmp_path / "run", "checkpoint"), events(tmp_path / "run", "resume")
    assert saved["name"] == loaded["from_checkpoint"] == "saved"
    assert loaded["lost"] == {}
    assert "sampler" in loaded["came_back"]
    assert resume_incomplete(tmp_path / "run") is Outcome.PASSED


def test_data_without_a_length(tmp_path: Path, rows: Any) -> None:
    class Stream(torch.utils.data.IterableDataset[Any]):
        def __iter__(self) -> Iterator[Any]:
            return iter(torch.randn(12, 8))

    accelerator = Accelerator(cpu=True)
    model, optimizer, scheduler, _ = prepared(accelerator)
    loader = accelerator.prepare(torch.utils.data.DataLoader(Stream(), 4))
    with follow(accelerator, tmp_path / "run", model, optimizer, scheduler):
        for _ in range(2):
            for x in loader:
                with accelerator.accumulate(model):
                    accelerator.backward(model(x).square().mean())
                    optimizer.step()
        accelerator.save_state(str(tmp_path / "saved"))
    assert [row["batch_id"] for row in rows(tmp_path / "run")] == ["0:0", "0:1", "0:2", "1:0", "1:1", "1:2"]


def test_an_exception_within_accumulate_is_told(tmp_path: Path, rows: Any, events: Any) -> None:
    accelerator = Accelerator(cpu=True)
    model, optimizer, scheduler, _ = prepared(accelerator)
    recorder = follow(accelerator, tmp_path / "run", model, optimizer, scheduler)
    with pytest.raises(KeyboardInterrupt), accelerator.accumulate(model):
        raise KeyboardInterrupt
    recorder.close()
    assert [row["attempted"] for row in rows(tmp_path / "run")] == [False]
    assert "KeyboardInterrupt" in events(tmp_path / "run", "exception")[0]["text"]


RANKS = """
import os, sys, torch
from accelerate import Accelerator
from recorder.integrations.accelerate import follow

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4)
child = os.fork()
rank = 0 if child else 1
os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "ACCELERATE_USE_CPU": "true"}
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", init_method=f"file://{sys.argv[1]}-meeting", rank=rank, world_size=2)
accelerator = Accelerator(cpu=True)
assert accelerator.num_processes == 2
model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)
follow(accelerator, sys.argv[1], model, optimizer, scheduler)
for _ in range(4):
    with accelerator.accumulate(model):
        accelerator.backward(model(torch.ones(2, 4) * (rank + 1)).sum())
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
torch.distributed.barrier()
torch.distributed.destroy_process_group()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork") or not torch.distributed.is_gloo_available(), reason="needs fork and gloo")
def test_processes_whose_scheduler_steps_once_for_each_of_them_and_which_nobody_closes(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(RANKS)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        found = read_run(tmp_path / "run", rank=rank).table.to_pylist()
        assert [row["scheduled"] for row in found] == [1] * 4
        assert [row["scheduled_n"] for row in found] == [row["executed_n"] for row in found] == [1, 2, 3, 4]
        assert [row["lr"] for row in found] == pytest.approx([0.1, 0.1, 0.01, 0.01])
    scheduler = read_run(tmp_path / "run").manifest["optimizers"]["optimizer"]["scheduler"]
    assert scheduler == {"class": "StepLR", "position": 0, "stride": 2}
    assert not list((tmp_path / "run").glob("steps/*/_journal*"))
