"""Hugging Face's Trainer with the callback, row by row against the same loop written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", reason="needs the extra [huggingface]")
pytest.importorskip("accelerate", reason="needs the extra [huggingface]")

from transformers import (  # noqa: E402  # after the skip
    EarlyStoppingCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    get_scheduler,
)

from recorder import FlightRecorder  # noqa: E402  # after the skip
from recorder.integrations.huggingface import SpikeviewCallback  # noqa: E402  # after the skip
from recorder.store import StoreError  # noqa: E402  # after the skip
from spikeview.rules.finding import Outcome  # noqa: E402  # after the skip
from tests.integrations.conftest import differences, resume_incomplete  # noqa: E402  # after the skip


class Regression(torch.nn.Module):
    """Labels go in, the mean loss comes out."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.body = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def forward(self, x: Any, labels: Any = None) -> dict[str, Any]:
        out = self.body(x)
        return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}


class ByItems(Regression):
    """The same, with a loss over the items of the whole accumulated batch."""

    def forward(self, x: Any, labels: Any = None, num_items_in_batch: Any = None, **kwargs: Any) -> dict[str, Any]:
        out = self.body(x)
        total = torch.nn.functional.mse_loss(out, labels, reduction="sum")
        return {"loss": total / (num_items_in_batch or labels.numel()), "logits": out}


SCALE = {"init_scale": 2.0**17, "growth_interval": 3}


class Scaled(Trainer):
    def create_accelerator_and_postprocess(self) -> None:
        super().create_accelerator_and_postprocess()
        self.accelerator.scaler = torch.amp.GradScaler("cpu", **SCALE)
        self.accelerator.native_amp = True


class Samples(torch.utils.data.Dataset[dict[str, Any]]):
    def __init__(self, count: int = 40, bad: int | None = None) -> None:
        self.x = torch.randn(count, 8, generator=torch.Generator().manual_seed(5))
        if bad is not None:
            self.x[bad] = float("nan")

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": self.x[index], "labels": self.x[index].sum()[None]}


def arguments(folder: Path, **settings: Any) -> TrainingArguments:
    chosen = {
        "per_device_train_batch_size": 4,
        "num_train_epochs": 1,
        "learning_rate": 0.01,
        "max_grad_norm": 0.5,
        "warmup_steps": 3,
        "use_cpu": True,
        "report_to": [],
        "save_strategy": "no",
        "disable_tqdm": True,
        "logging_steps": 5,
        "dataloader_pin_memory": False,
        **settings,
    }
    return TrainingArguments(output_dir=str(folder / "out"), **chosen)


def trainer(
    folder: Path,
    model: Any = None,
    data: Any = None,
    callbacks: Any = (),
    kind: type[Trainer] = Trainer,
    **settings: Any,
) -> Trainer:
    return kind(
        Regression() if model is None else model,
        arguments(folder, **settings),
        train_dataset=Samples() if data is None else data,
        eval_dataset=Samples(8),
        callbacks=list(callbacks),
    )


def by_hand(
    folder: Path,
    model: Any,
    data: Any,
    dtype: Any = None,
    by_items: bool = False,
    scaler: Any = None,
    **settings: Any,
) -> Path:
    """What the Trainer does, written out."""
    scaler = scaler or torch.amp.GradScaler("cpu", enabled=False)
    args = arguments(folder, **settings)
    like = Trainer(model, args, train_dataset=data)
    every, limit = args.gradient_accumulation_steps, args.max_grad_norm
    loader = like.get_train_dataloader()
    per_epoch = -(-len(loader) // every)
    steps = args.max_steps if args.max_steps > 0 else per_epoch * args.num_train_epochs
    optimizer = like.create_optimizer()
    scheduler = get_scheduler("linear", optimizer, num_warmup_steps=args.warmup_steps, num_training_steps=steps)
    model.train()
    with FlightRecorder(
        folder / "hand", model, optimizer, scaler=scaler, scheduler=scheduler, max_norm=limit or None, deep_every=1
    ) as recorder:
        step = 0
        for epoch in range(-(-steps // per_epoch)):
            loader.set_epoch(epoch)
            batches = list(loader)
            for index, batch in enumerate(batches):
                begin = index // every * every
                together = batches[begin : begin + every]
                last = index + 1 == begin + len(together)
                items = sum(each["labels"].numel() for each in together)
                with recorder.transition(f"{epoch}:{index}", step=step, accumulating=not last) as t:
                    with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
                        inputs = {**batch, "num_items_in_batch": items} if by_items else batch
                        loss = model(**inputs)["loss"].float()
                    t.observe_loss(loss)
                    scaler.scale(loss if by_items else loss / len(together)).backward()
                    if last:
                        scaler.unscale_(optimizer)
                        t.measure_grad_norm()
                        if limit:
                            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
                            t.observe_grad_norm(norm, max_norm=limit)
                        scaler.step(optimizer)
                        scaler.update()
                        scheduler.step()
                        optimizer.zero_grad()
                        step += 1
                if step == steps:
                    return folder / "hand"
    return folder / "hand"


PLANS: dict[str, dict[str, Any]] = {
    "plain": {},
    "bf16": {"bf16": True},
    "accumulation": {"gradient_accumulation_steps": 4, "num_train_epochs": 2},
    "no_clipping": {"max_grad_norm": 0.0},
    "max_steps": {"max_steps": 13, "gradient_accumulation_steps": 3},
}


@pytest.mark.parametrize("plan", PLANS)
def test_rows_are_those_of_the_loop_written_by_hand(tmp_path: Path, rows: Any, plan: str) -> None:
    settings = PLANS[plan]
    run = tmp_path / "run"
    trainer(tmp_path, callbacks=[SpikeviewCallback(run, deep_every=1)], **settings).train()
    hand = by_hand(tmp_path, Regression(), Samples(), torch.bfloat16 if settings.get("bf16") else None, **settings)
    found = rows(run)
    assert len(found) == {"accumulation": 20, "max_steps": 33}.get(plan, 10)
    assert differences(found, rows(hand)) == []
    assert {row["precision"] for row in found} == {"bf16" if plan == "bf16" else "fp32"}
    assert sum(row["executed"] for row in found) == found[-1]["scheduled_n"] == found[-1]["executed_n"]
    clipped = [row["clip_coef"] for row in found if row["attempted"]]
    assert (min(c or 1 for c in clipped) < 1) is (plan != "no_clipping")


def test_a_loss_by_items_is_the_share_of_its_micro_batch(tmp_path: Path, rows: Any, events: Any) -> None:
    run, settings = tmp_path / "run", {"gradient_accumulation_steps": 4}
    trainer(tmp_path, ByItems(), callbacks=[SpikeviewCallback(run, deep_every=1)], **settings).train()
    assert differences(rows(run), rows(by_hand(tmp_path, ByItems(), Samples(), by_items=True, **settings))) == []
    assert [note for note in events(run, "note") if "num_items_in_batch" in note["text"]]


def test_the_loss_is_raw_where_the_trainers_log_is_filtered(tmp_path: Path, rows: Any) -> None:
    run = tmp_path / "run"
    watched = trainer(
        tmp_path, data=Samples(bad=17), callbacks=[SpikeviewCallback(run, deep_every=1)], max_grad_norm=1.0
    )
    watched.train()
    logged = [entry["loss"] for entry in watched.state.log_history if "loss" in entry]
    assert all(loss == loss for loss in logged)  # the Trainer's own log holds no NaN at all
    found = rows(run)
    first = next(row["row"] for row in found if row["loss"] != row["loss"])
    assert all(row["loss"] != row["loss"] for row in found[first:])
    assert found[first]["grad_nonfinite_params"] > 0
    assert found[first]["clip_coef"] is None


@pytest.mark.parametrize("accumulation", [1, 3])
def test_weights_are_the_same_bit_for_bit(tmp_path: Path, accumulation: int) -> None:
    ended = []
    for callbacks in ([], [SpikeviewCallback(tmp_path / "run", deep_every=1)]):
        model = Regression()
        trainer(tmp_path, model, callbacks=callbacks, gradient_accumulation_steps=accumulation).train()
        ended.append(model.state_dict())
    assert all(torch.equal(ended[0][name], ended[1][name]) for name in ended[0])


def test_evaluation_saving_and_resuming(tmp_path: Path, rows: Any, events: Any) -> None:
    """A training that is stopped and resumed from its checkpoint has the rows of one that never stopped."""
    settings = {"save_strategy": "steps", "save_steps": 4, "eval_strategy": "steps", "eval_steps": 4}
    settings |= {"num_train_epochs": 2, "gradient_accumulation_steps": 2}
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    trainer(tmp_path, callbacks=[SpikeviewCallback(whole, deep_every=1)], **settings).train()

    class Stop(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            control.should_training_stop = state.global_step == 6

    trainer(tmp_path, callbacks=[SpikeviewCallback(parts, deep_every=1), Stop()], **settings).train()
    checkpoint = str(tmp_path / "out" / "checkpoint-4")
    trainer(tmp_path, callbacks=[SpikeviewCallback(parts, deep_every=1)], **settings).train(
        resume_from_checkpoint=checkpoint
    )
    once, twice = rows(whole), rows(parts)
    assert len(twice) == 12 + 12
    assert [row["segment"] for row in twice] == [0] * 12 + [1] * 12
    assert differences(twice[12:], once[8:], ("row", "segment")) == []
    [resumed] = events(parts, "resume")
    assert resumed["from_checkpoint"] == "checkpoint-4"
    assert resumed["lost"] == {}
    assert set(resumed["came_back"]) == {"model", "optimizer", "scheduler", "scaler", "rng", "sampler", "accumulation"}
    assert resume_incomplete(parts) is Outcome.PASSED
    assert [event["name"] for event in events(whole, "checkpoint")] == ["checkpoint-4", "checkpoint-8", "checkpoint-10"]
    assert len(events(whole, "validation")) == 3


def test_what_a_resume_leaves_out_is_measured(tmp_path: Path, events: Any) -> None:
    settings = {"save_strategy": "steps", "save_steps": 4, "max_steps": 8}
    trainer(tmp_path, callbacks=[SpikeviewCallback(tmp_path / "run")], **settings).train()
    checkpoint = tmp_path / "out" / "checkpoint-4"
    (checkpoint / "optimizer.pt").unlink()  # without it the Trainer restores no scheduler either, and says nothing
    resuming = trainer(tmp_path, callbacks=[SpikeviewCallback(tmp_path / "run")], ignore_data_skip=True, **settings)
    resuming.train(resume_from_checkpoint=str(checkpoint))
    [resumed] = events(tmp_path / "run", "resume")
    assert set(resumed["lost"]) == {"optimizer", "scheduler", "sampler"}
    assert resumed["lost"]["sampler"] == "position 0:0, was 0:4"
    assert resume_incomplete(tmp_path / "run") is Outcome.FAILED


def test_train_called_twice_goes_on_in_the_same_run(tmp_path: Path, rows: Any, events: Any) -> None:
    run = tmp_path / "run"
    twice = trainer(tmp_path, callbacks=[SpikeviewCallback(run, deep_every=1)])
    twice.train()
    twice.train()
    found = rows(run)
    assert [row["step"] for row in found] == list(range(20))
    assert [row["segment"] for row in found] == [0] * 10 + [1] * 10
    assert [row["executed_n"] for row in found] == list(range(1, 21))
    assert events(run, "resume") == []


def test_a_batch_size_that_is_found_by_trying_begins_a_segment(tmp_path: Path, rows: Any, events: Any) -> None:
    class Small(Regression):
        def forward(self, x: Any, labels: Any = None) -> dict[str, Any]:
            if len(x) > 2:
                raise RuntimeError("CUDA out of memory.")
            return super().forward(x, labels)

    settings = {"auto_find_batch_size": True, "max_steps": 4}
    trainer(tmp_path, Small(), callbacks=[SpikeviewCallback(tmp_path / "run")], **settings).train()
    found = rows(tmp_path / "run")
    assert [row["executed"] for row in found] == [*[False] * (len(found) - 4), *[True] * 4]
    assert [row["segment"] for row in found][-5:] == [found[-5]["segment"], *[found[-5]["segment"] + 1] * 4]
    assert any("counts on from" in note["text"] for note in events(tmp_path / "run", "note"))


def test_data_without_a_length(tmp_path: Path, rows: Any) -> None:
    class Stream(torch.utils.data.IterableDataset[dict[str, Any]]):
        def __iter__(self) -> Iterator[dict[str, Any]]:
            samples = Samples()
            return (samples[index] for index in range(len(samples)))

    trainer(tmp_path, data=Stream(), callbacks=[SpikeviewCallback(tmp_path / "run")], max_steps=12).train()
    found = rows(tmp_path / "run")
    assert [row["batch_id"] for row in found] == [*[f"0:{n}" for n in range(10)], "1:0", "1:1"]


@pytest.mark.parametrize("error", [ValueError("no more data"), KeyboardInterrupt()])
def test_what_ends_the_training_is_told_and_the_run_is_sealed(
    tmp_path: Path, rows: Any, events: Any, error: BaseException
) -> None:
    class Ends(Regression):
        calls = 0

        def forward(self, x: Any, labels: Any = None) -> dict[str, Any]:
            self.calls += 1
            if self.calls == 4:
                raise error
            return super().forward(x, labels)

    callback = SpikeviewCallback(tmp_path / "run")
    with pytest.raises(type(error)):
        trainer(tmp_path, Ends(), callbacks=[callback]).train()
    found = rows(tmp_path / "run")
    assert [row["executed"] for row in found] == [True, True, True, False]
    assert found[3]["loss"] is None
    [told] = events(tmp_path / "run", "exception")
    assert type(error).__name__ in told["text"]
    assert callback.recorder is None


def test_early_stopping_and_a_subclass_with_its_own_loss(tmp_path: Path, rows: Any) -> None:
    class Own(Trainer):
        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **kwargs: Any) -> Any:
            outputs = model(**inputs)
            loss = 3.0 * outputs["loss"]
            seen.append(loss.item()) if model.training else None
            return (loss, outputs) if return_outputs else loss

    seen: list[float] = []
    settings = {"eval_strategy": "steps", "eval_steps": 2, "save_strategy": "steps", "save_steps": 2}
    settings |= {"load_best_model_at_end": True, "metric_for_best_model": "eval_loss", "learning_rate": 0.0}
    stopping = EarlyStoppingCallback(early_stopping_patience=1)
    run = tmp_path / "run"
    trainer(tmp_path, callbacks=[SpikeviewCallback(run), stopping], kind=Own, **settings).train()
    assert [row["loss"] for row in rows(run)] == seen
    assert 0 < len(seen) < 10


def test_a_training_step_without_compute_loss_has_no_loss_and_says_so_once(
    tmp_path: Path, rows: Any, events: Any
) -> None:
    class Own(Trainer):
        def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
            loss = model(**inputs)["loss"]
            self.accelerator.backward(loss)
            return loss.detach()

    trainer(tmp_path, callbacks=[SpikeviewCallback(tmp_path / "run")], kind=Own, eval_strategy="epoch").train()
    found = rows(tmp_path / "run")
    assert [row["loss"] for row in found] == [None] * 10
    assert all(row["executed"] and row["grad_norm"] for row in found)
    assert len([note for note in events(tmp_path / "run", "note") if "compute_loss" in note["text"]]) == 1


def test_fp16_with_steps_that_the_scaler_declines(tmp_path: Path, rows: Any) -> None:
    """Real overflows. Accelerate makes no scaler on a CPU, so this Trainer brings torch's own."""
    run = tmp_path / "run"
    watched = trainer(tmp_path, callbacks=[SpikeviewCallback(run, deep_every=1)], kind=Scaled, fp16=True)
    watched.train()
    hand = by_hand(tmp_path, Regression(), Samples(), torch.float16, scaler=torch.amp.GradScaler("cpu", **SCALE))
    found = rows(run)
    assert differences(found, rows(hand)) == []
    assert {row["precision"] for row in found} == {"fp16"}
    declined = [row for row in found if row["skip_reason"] == "amp_overflow"]
    assert 0 < len(declined) < 10
    assert all(row["attempted"] and not row["executed"] and row["grad_nonfinite_params"] for row in declined)
    assert found[-1]["executed_n"] == 10 - len(declined)
    # Under a fused optimizer Accelerate takes no step for skipped, so the Trainer's scheduler runs ahead.
    assert not watched.accelerator.optimizer_step_was_skipped
    assert found[-1]["scheduled_n"] == 10


def test_a_run_that_is_there_is_refused_before_the_first_step(tmp_path: Path) -> None:
    run = tmp_path / "run"
    trainer(tmp_path, callbacks=[SpikeviewCallback(run, deep_every=1)], max_steps=1).train()
    with pytest.raises(StoreError, match="resume=True"):
        trainer(tmp_path, callbacks=[SpikeviewCallback(run, deep_every=1)]).train()


def test_without_a_directory_the_run_lies_in_the_trainers_own(tmp_path: Path, rows: Any) -> None:
    trainer(tmp_path, callbacks=[SpikeviewCallback], max_steps=2).train()
    assert len(rows(tmp_path / "out" / "spikeview")) == 2


def test_batches_are_named_by_the_loop_where_it_can(tmp_path: Path, rows: Any) -> None:
    def name(inputs: Any) -> str:
        return f"{float(inputs['labels'][0]):.3f}"

    trainer(tmp_path, callbacks=[SpikeviewCallback(tmp_path / "run", batch_id=name)], max_steps=3).train()
    loader: Iterator[Any] = iter(trainer(tmp_path).get_train_dataloader())
    assert [row["batch_id"] for row in rows(tmp_path / "run")] == [name(next(loader)) for _ in range(3)]


@pytest.mark.parametrize("where", ["compute_loss", "before", "after"])
def test_an_evaluation_within_a_step_is_not_its_loss(tmp_path: Path, rows: Any, events: Any, where: str) -> None:
    class Own(Trainer):
        def look(self, now: str) -> None:
            if where == now and self.state.global_step == 1:
                self.evaluate()
                self.model.train()

        def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            if model.training:
                self.look("compute_loss")
            result = super().compute_loss(model, inputs, *args, **kwargs)
            if model.training:
                seen.append(result.item())
            return result

        def training_step(self, *args: Any, **kwargs: Any) -> Any:
            self.look("before")
            result = super().training_step(*args, **kwargs)
            self.look("after")
            return result

    seen: list[float] = []
    trainer(tmp_path, callbacks=[SpikeviewCallback(tmp_path / "run")], kind=Own, max_steps=3).train()
    assert [row["loss"] for row in rows(tmp_path / "run")] == seen
    assert [event["row"] for event in events(tmp_path / "run", "validation")] == [1]


def test_two_callbacks_of_one_run_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    twice = [SpikeviewCallback(tmp_path / "run"), SpikeviewCallback(str(tmp_path / "run"), resume=True)]
    with pytest.raises(ValueError, match="leave one of them out"):
        trainer(tmp_path, callbacks=twice, max_steps=1).train()
    assert not (tmp_path / "run").exists()


def test_a_callback_that_comes_late_says_that_it_records_nothing(tmp_path: Path) -> None:
    class Adds(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == 1:
                watched.add_callback(SpikeviewCallback(tmp_path / "run"))

    watched = trainer(tmp_path, callbacks=[Adds()], max_steps=3)
    with pytest.warns(RuntimeWarning, match="had begun") as told:
        watched.train()
    assert len([each for each in told if "SpikeviewCallback" in str(each.message)]) == 1
    assert not (tmp_path / "run").exists()
