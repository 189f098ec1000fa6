"""Loops that have broken a recorder once: what they recorded wrongly, or what the recorder did to them."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

from recorder.store import read_run

FAULT = "ignore:the flight recorder met a fault"


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))


def sgd(model: nn.Module, lr: float = 0.1) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=lr)


def loss_of(model: nn.Module) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(4, 8, generator=generator)
    return mse_loss(model(x), torch.randn(4, 1, generator=generator))


def true_norm(model: nn.Module) -> float:
    return float(torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None]))


# Whose gradients are scaled


def test_an_optimizer_that_the_scaler_does_not_handle(record: Any) -> None:
    amp, plain = net(), net()
    optimizers = {"amp": sgd(amp), "plain": sgd(plain)}
    scaler = torch.amp.GradScaler("cpu")
    model = nn.ModuleList([amp, plain])
    with record(model, optimizers, scaler={"amp": scaler}, max_norm=10.0) as recorder, recorder.transition() as t:
        scaler.scale(loss_of(amp)).backward()
        scaler.step(optimizers["amp"])
        loss_of(plain).backward()
        norm = true_norm(plain)
        assert float(t.of("plain").clip_grad_norm_()) == pytest.approx(norm)
        assert true_norm(plain) == norm
        optimizers["plain"].step()
        scaler.update()
    row = record.rows("plain")[0]
    assert row["grad_norm"] == pytest.approx(norm)
    assert row["loss_scale"] is None
    assert record.rows("amp")[0]["loss_scale"] == 65536


def test_a_loop_that_leaves_its_scaler_aside(record: Any) -> None:
    model = net()
    optimizer = sgd(model)
    scaler = torch.amp.GradScaler("cpu")
    norms = []
    with record(model, optimizer, scaler=scaler) as recorder:
        for index in range(3):
            with recorder.transition():
                optimizer.zero_grad()
                loss = loss_of(model)
                (scaler.scale(loss) if index == 0 else loss).backward()
                norms.append(true_norm(model) / (65536 if index == 0 else 1))
                if index == 0:
                    scaler.step(optimizer)
                    scaler.update()
                else:
                    optimizer.step()
    assert record.column("grad_norm") == pytest.approx(norms, rel=1e-5)


def test_one_scaler_per_optimizer(record: Any) -> None:
    models = nn.ModuleDict({"g": net(), "d": net()})
    optimizers = {name: sgd(model) for name, model in models.items()}
    scalers = {"g": torch.amp.GradScaler("cpu", init_scale=64.0), "d": torch.amp.GradScaler("cpu", init_scale=128.0)}
    with record(models, optimizers, scaler=scalers) as recorder, recorder.transition():
        for name, optimizer in optimizers.items():
            scalers[name].scale(loss_of(models[name])).backward()
            scalers[name].step(optimizer)
            scalers[name].update()
    assert [row["loss_scale"] for row in record.rows()] == [64, 128]
    norms = record.column("grad_norm")
    assert norms[0] == pytest.approx(norms[1], rel=1e-5)


def test_the_scale_is_the_one_of_the_attempt(record: Any) -> None:
    model = net()
    optimizer = sgd(model)
    scaler = torch.amp.GradScaler("cpu")
    with record(model, optimizer, scaler=scaler) as recorder, recorder.transition():
        scaler.scale(loss_of(model)).detach()
        scaler.update(2.0)
        scaler.scale(loss_of(model)).backward()
        scaler.step(optimizer)
        scaler.update()
    assert record.column("loss_scale") == [2.0]


def test_a_step_that_raises_under_a_scaler_is_no_overflow(record: Any) -> None:
    model = net()
    optimizer = sgd(model)
    scaler = torch.amp.GradScaler("cpu")

    def out_of_memory(*_: Any) -> None:
        raise RuntimeError("out of memory")

    recorder = record(model, optimizer, scaler=scaler)
    optimizer.register_step_pre_hook(out_of_memory)

    def loop() -> None:
        with recorder.transition():
            scaler.scale(loss_of(model)).backward()
            scaler.step(optimizer)

    with pytest.raises(RuntimeError, match="out of memory"):
        loop()
    recorder.close()
    row = record.rows()[0]
    assert (row["attempted"], row["executed"], row["skip_reason"]) == (True, False, None)


# Measuring and clipping more than once, and inside a closure


def test_measuring_after_clipping_leaves_the_norm_before_it(record: Any) -> None:
    model = net()
    optimizer = sgd(model)
    with record(model, optimizer, max_norm=0.1) as recorder, recorder.transition() as t:
        loss_of(model).backward()
        norm = true_norm(model)
        t.clip_grad_norm_()
        t.measure_grad_norm()
        optimizer.step()
    row = record.rows()[0]
    assert row["grad_norm"] == pytest.approx(norm)
    assert row["clip_coef"] == pytest.approx(0.1 / norm, rel=1e-4)


def test_clipping_twice_applies_both_factors(record: Any) -> None:
    model = net()
    optimizer = sgd(model)
    with record(model, optimizer) as recorder, recorder.transition() as t:
        loss_of(model).backward()
        norm = true_norm(model)
        t.clip_grad_norm_(0.5)
        t.clip_grad_norm_(0.1)
        after = true_norm(model)
        optimizer.step()
    row = record.rows()[0]
    assert row["grad_norm"] == pytest.approx(norm)
    assert row["clip_coef"] == pytest.approx(after / norm, rel=1e-4)


@pytest.mark.parametrize("kind", ["lbfgs", "sgd"])
def test_clipping_inside_a_closure(record: Any, kind: str) -> None:
    model = net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3) if kind == "lbfgs" else sgd(model)
    norms = []
    with record(model, optimizer, max_norm=0.1) as recorder, recorder.transition() as t:

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = loss_of(model)
            t.observe_loss(loss)
            loss.backward()
            norms.append(true_norm(model))
            t.clip_grad_norm_()
            return loss

        optimizer.step(closure)
    [row] = record.rows()
    assert row["grad_norm"] == pytest.approx(norms[0])
    assert row["max_norm"] == 0.1
    assert row["clip_coef"] == pytest.approx(0.1 / norms[0], rel=1e-4)


def test_a_closure_through_a_disabled_scaler_is_one_row(record: Any) -> None:
    model = net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    scaler = torch.amp.GradScaler("cpu", enabled=False)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss

    with record(model, optimizer, scaler=scaler) as recorder:
        for index in range(3):
            with recorder.transition(index):
                scaler.step(optimizer, closure)
    assert record.column("attempted_n") == [1, 2, 3]
    assert record.column("executed") == [True] * 3
    assert record.column("step") == [0, 1, 2]


# What moves


def test_frozen_parameters_that_still_hold_a_gradient_move(record: Any) -> None:
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    with record(model, optimizer) as recorder:
        for index in range(3):
            if index == 2:
                model.requires_grad_(False)
            before = [p.detach().clone() for p in model.parameters()]
            with recorder.transition():
                optimizer.zero_grad(set_to_none=False)
                if index < 2:
                    loss_of(model).backward()
                optimizer.step()
            moved = torch.cat([(p - b).flatten() for p, b in zip(model.parameters(), before, strict=True)]).norm()
    row = record.rows()[2]
    assert row["moved"] is True
    assert row["update_norm"] == pytest.approx(float(moved.detach()), rel=1e-5)
    assert row["grad_none_params"] == 0


def test_clipping_reaches_gradients_of_parameters_frozen_since(record: Any) -> None:
    model = net()
    optimizer = sgd(model)
    with record(model, optimizer, max_norm=0.1) as recorder, recorder.transition() as t:
        loss_of(model).backward()
        norm = true_norm(model)
        model[0].requires_grad_(False)
        t.clip_grad_norm_()
        assert true_norm(model) == pytest.approx(0.1, rel=1e-4)
        optimizer.step()
    assert record.rows()[0]["grad_norm"] == pytest.approx(norm)


def test_a_model_cast_while_running(record: Any) -> None:
    model = net()
    optimizer = sgd(model, lr=1e-9)
    with record(model, optimizer) as recorder:
        for index in range(2):
            if index == 1:
                model.double()
            with recorder.transition():
                optimizer.zero_grad()
                dtype = next(model.parameters()).dtype
                model(torch.ones(2, 8, dtype=dtype)).square().sum().backward()
                norm = true_norm(model)
                optimizer.step()
    row = record.rows()[1]
    assert row["moved"] is True
    assert row["update_norm"] == pytest.approx(1e-9 * norm, rel=1e-4)


def test_stepping_inside_autocast(record: Any) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 256), nn.Tanh(), nn.Linear(256, 256), nn.Linear(256, 1))
    optimizer = sgd(model, lr=1e-4)
    with (
        record(model, optimizer, deep_every=0) as recorder,
        recorder.transition(),
        torch.autocast("cpu", torch.float16),
    ):
        loss_of(model).backward()
        optimizer.step()
    assert record.column("update_cosine") == [pytest.approx(1.0, abs=1e-4)]


def test_a_row_under_inference_mode_and_one_after_it(record: Any) -> None:
    model = net()
    optimizer = sgd(model)
    with record(model, optimizer) as recorder:
        with torch.inference_mode(), recorder.transition() as t:
            t.observe_loss(loss_of(model))
            t.measure_grad_norm()
        with recorder.transition():
            loss_of(model).backward()
            optimizer.step()
    assert record.column("update_cosine")[1] == pytest.approx(1.0, abs=1e-6)


def test_parameters_of_size_zero(record: Any) -> None:
    model = nn.ModuleList([net(), nn.ParameterList([nn.Parameter(torch.empty(0))])])
    optimizer = sgd(model)
    with record(model, optimizer, deep_every=1) as recorder, recorder.transition():
        (loss_of(model[0]) + model[1][0].sum()).backward()
        optimizer.step()
    assert record.rows()[0]["update_cosine"] == pytest.approx(1.0, abs=1e-6)
    assert record.events("recorder_fault") == []


# Schedulers


def test_a_scheduler_set_back_is_not_credited_to_the_row_before(record: Any) -> None:
    model = net()
    optimizer = sgd(model)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)
    saved = scheduler.state_dict()
    with record(model, optimizer, scheduler=scheduler) as recorder:
        for index in range(4):
            with recorder.transition():
                loss_of(model).backward()
                optimizer.step()
                scheduler.step()
            if index == 1:
                scheduler.load_state_dict(saved)
    assert record.column("scheduled") == [1, 1, 1, 1]
    assert record.column("scheduled_n") == [1, 2, 3, 4]


def test_a_scheduler_told_fractions_of_an_epoch(record: Any) -> None:
    model = net()
    optimizer = sgd(model)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    with record(model, optimizer, scheduler=scheduler) as recorder:
        for index in range(1, 7):
            with recorder.transition():
                loss_of(model).backward()
                optimizer.step()
                scheduler.step(index / 3)
    assert record.column("scheduled") == [1] * 6


# What the loop asks and gets


def test_executed_can_be_asked_after_the_transition(record: Any) -> None:
    model = net()
    optimizer = sgd(model)
    scaler = torch.amp.GradScaler("cpu")
    answers = []
    recorder = record(model, optimizer, scaler=scaler)
    for overflows in (False, True):
        with recorder.transition() as t:
            optimizer.zero_grad()
            scaler.scale(loss_of(model)).backward()
            if overflows:
                model[0].weight.grad.fill_(float("inf"))
            scaler.step(optimizer)
            scaler.update()
        answers.append(t.executed)
    recorder.close()
    with recorder.transition() as t:
        optimizer.step()
    assert answers == [True, False]
    assert t.executed is True


@pytest.mark.filterwarnings(FAULT)
def test_what_cannot_be_a_batch_id_or_a_step_costs_only_itself(record: Any) -> None:
    class Odd:
        def __str__(self) -> str:
            raise LookupError("no text")

    model = net()
    optimizer = sgd(model)
    with record(model, optimizer) as recorder:
        for batch_id, step in ((Odd(), 7), ("b", float("nan")), ("c", 2**63)):
            with recorder.transition(batch_id, step=step) as t:
                loss_of(model).backward()
                optimizer.step()
                assert t.executed
    assert record.column("batch_id") == [None, "b", "c"]
    assert record.column("step") == [7, 1, 2]
    assert record.column("executed_n") == [1, 2, 3]


@pytest.mark.filterwarnings(FAULT)
def test_one_bad_value_costs_only_itself(record: Any) -> None:
    model = net()
    optimizer = sgd(model)
    with record(model, optimizer) as recorder:
        for index in range(3):
            with recorder.transition() as t:
                loss = loss_of(model)
                t.observe_loss(loss, count=float("nan") if index == 0 else 4)
                if index == 1:
                    t.record(good=1, phase=torch.tensor(1j), meta=torch.tensor(1.0, device="meta"), shapes=[1, 2])
                t.record(exact=torch.tensor(2**60 + 1))
                loss.backward()
                optimizer.step()
    rows = record.rows()
    assert [row["loss"] for row in rows] == [pytest.approx(row["loss"]) for row in rows]
    assert [row["loss_count"] for row in rows] == [None, 4, 4]
    assert rows[1]["user_good"] == 1
    assert {"user_phase", "user_meta", "user_shapes"}.isdisjoint(rows[1])
    assert rows[0]["user_exact"] == 2**60 + 1


@pytest.mark.filterwarnings(FAULT)
def test_too_many_user_fields_cost_only_the_surplus(record: Any) -> None:
    model = net()
    optimizer = sgd(model)
    with record(model, optimizer) as recorder, recorder.transition() as t:
        t.record(**{f"g{index}": index for index in range(1200)})
    row = record.rows()[0]
    assert row["user_g0"] == 0
    assert row["user_g499"] == 499
    assert "user_g500" not in row


# What the recorder must not do to a loop


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.parametrize("case", ["sparse", "float8", "nested"])
def test_outputs_that_have_no_largest_number_pass_the_forward_hook(record: Any, case: str) -> None:
    class Odd(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if case == "sparse":
                return x.to_sparse()
            return x.to(torch.float8_e4m3fn) if case == "float8" else torch.nested.as_nested_tensor([x[0], x[1, :4]])

    odd, head = Odd(), nn.Linear(8, 1)
    optimizer = sgd(head)
    with record(nn.ModuleList([odd, head]), optimizer, deep_every=1) as recorder, recorder.transition():
        odd(torch.eye(8))
        head(torch.eye(8)).sum().backward()
        optimizer.step()
    assert record.column("activation_absmax")[0] > 0
    assert record.events("recorder_fault") == []


def test_per_sample_gradients_on_deep_rows(record: Any) -> None:
    from torch.func import functional_call, grad, vmap

    model = net()
    optimizer = sgd(model)
    x = torch.randn(4, 8)

    def loss(parameters: Any, sample: torch.Tensor) -> torch.Tensor:
        return functional_call(model, parameters, (sample[None],)).square().mean()

    with record(model, optimizer, deep_every=1) as recorder:
        for index in range(3):
            with recorder.transition(index):
                detached = {name: p.detach() for name, p in model.named_parameters()}
                gradients = vmap(grad(loss), (None, 0))(detached, x)
                for name, parameter in model.named_parameters():
                    parameter.grad = gradients[name].mean(0)
                optimizer.step()
    assert record.column("executed_n") == [1, 2, 3]
    assert record.events("recorder_fault") == []


def test_a_scaler_can_be_pickled_copied_and_watched_twice(record: Any, tmp_path: Any) -> None:
    from recorder import FlightRecorder

    model = net()
    optimizer = sgd(model)
    scaler = torch.amp.GradScaler("cpu")
    first = record(model, optimizer, scaler=scaler)
    second = FlightRecorder(tmp_path / "second", model, optimizer, scaler=scaler)
    scaler.scale(loss_of(model))
    pickle.dumps(scaler)
    torch.save(scaler, io.BytesIO())
    twin = copy.deepcopy(scaler)
    with first.transition(), second.transition():
        twin.scale(loss_of(model)).backward()
        twin.step(optimizer)
        twin.update()
    first.close()
    with second.transition():
        optimizer.zero_grad()
        scaler.scale(loss_of(model)).backward()
        model[0].weight.grad.fill_(float("nan"))
        scaler.step(optimizer)
        scaler.update()
    second.close()
    assert "step" not in vars(scaler)
    rows = read_run(tmp_path / "second").table.to_pylist()
    assert [row["skip_reason"] for row in rows] == [None, "amp_overflow"]


def test_an_exception_without_a_text_passes_as_it_is(record: Any) -> None:
    class WordlessError(Exception):
        def __str__(self) -> str:
            raise KeyError("k")

    recorder = record(net(), sgd(net()))

    def loop() -> None:
        with recorder.transition():
            raise WordlessError

    with pytest.raises(WordlessError):
        loop()
    recorder.close()
    assert record.events("exception")[0]["text"] == "WordlessError"


def test_leaving_a_generator_is_no_exception_of_the_run(record: Any) -> None:
    recorder = record(net(), sgd(net()))

    def loop() -> Iterator[int]:
        for index in range(3):
            with recorder.transition(index):
                yield index

    for _ in loop():
        break
    recorder.close()
    assert record.events("exception") == []
    assert record.column("batch_id") == ["0"]


def test_exporting_a_model_inside_a_deep_row(record: Any) -> None:
    model = net()
    plain = torch.export.export(model, (torch.ones(1, 8),))
    with record(model, sgd(model), deep_every=1) as recorder, recorder.transition(0):
        watched = torch.export.export(model, (torch.ones(1, 8),))
    assert len(watched.graph.nodes) == len(plain.graph.nodes)
    assert len(record.rows()) == 1


# Settings


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"max_norm": "x"}, TypeError, "max_norm"),
        ({"max_norm": -1.0}, ValueError, "max_norm"),
        ({"overhead_budget": 0}, ValueError, "overhead_budget"),
        ({"overhead_budget": float("nan")}, ValueError, "overhead_budget"),
        ({"triggers": 5}, TypeError, "triggers"),
        ({"scheduler": {1: None, "z": None}}, ValueError, "scheduler"),
    ],
)
def test_settings_are_refused_before_anything_is_written(
    record: Any, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    model = net()
    with pytest.raises(error, match=message):
        record(model, sgd(model), **settings)
    assert not record.path.exists()


@pytest.mark.parametrize("optimizer", [None, [], {}, {1: "x"}])
def test_what_is_no_optimizer_is_refused(record: Any, optimizer: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="optimizer"):
        record(net(), optimizer)


def test_configurations_of_every_shape_are_kept(record: Any) -> None:
    from argparse import Namespace

    cyclic: dict[str, Any] = {"lr": 0.1}
    cyclic["self"] = cyclic
    model = net()
    record(model, sgd(model), config=cyclic).close()
    assert read_run(record.path).manifest["config"]["lr"] == 0.1
    record(model, sgd(model), config=Namespace(batch=8), resume=True).close()
    assert read_run(record.path).manifest["config"]["batch"] == 8


def test_a_lazy_model_is_refused_with_what_to_do(record: Any) -> None:
    model = nn.LazyLinear(1)
    with pytest.raises(ValueError, match="one forward"):
        record(model, torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1))


def test_own_clipping_told_with_its_limit_keeps_cosine_and_flags(record: Any) -> None:
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with record(model, optimizer) as recorder, recorder.transition() as t:
        loss_of(model).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        t.observe_grad_norm(norm, max_norm=0.1)
        optimizer.step()
    row = record.rows()[0]
    assert row["grad_norm"] == pytest.approx(float(norm))
    assert row["clip_coef"] == pytest.approx(0.1 / float(norm), rel=1e-4)
    assert row["update_cosine"] is not None
    assert row["grad_nonfinite_params"] == 0
    assert row["top_group"] is not None


def test_a_loss_observed_again_before_a_step_is_said_once(record: Any) -> None:
    model = net()
    optimizer = sgd(model)
    with record(model, optimizer) as recorder:
        for _ in range(2):
            with recorder.transition() as t:
                for _ in range(4):
                    loss = loss_of(model)
                    t.observe_loss(loss)
                    loss.backward()
                optimizer.step()
    [note] = record.events("note")
    assert "accumulating=True" in note["text"]


def test_a_departure_that_lasts_over_micro_steps_is_told_once(record: Any) -> None:
    model = net()
    optimizer = sgd(model, lr=1e-9)
    with record(model, optimizer, max_norm=1.0) as recorder:
        for index in range(100):
            last = index % 2 == 1
            with recorder.transition(index, accumulating=not last) as t:
                loss = loss_of(model) * (1e4 if 60 <= index < 80 else 1.0)
                t.observe_loss(loss)
                loss.backward()
                if last:
                    t.clip_grad_norm_()
                    optimizer.step()
                    optimizer.zero_grad()
    told = [(event["trigger"], event["row"]) for event in record.events("trigger")]
    assert told == [("loss_departs", 60), ("grad_norm_departs", 61)]


@pytest.mark.filterwarnings(FAULT)
def test_an_optimizer_fused_into_backward_is_refused_in_words_and_not_in_deed(record: Any) -> None:
    """Its gradients are gone before anything could measure them: the row says that it stepped, and no more."""
    model = net()
    parameter = model[0].weight
    optimizer = torch.optim.SGD([parameter], lr=0.1)

    def step(gradient_of: torch.Tensor) -> None:
        optimizer.step()
        optimizer.zero_grad()

    parameter.register_post_accumulate_grad_hook(step)
    before = parameter.detach().clone()
    with record(model, optimizer) as recorder, recorder.transition() as t:
        loss = loss_of(model)
        t.observe_loss(loss)
        loss.backward()
    row = record.rows()[0]
    assert not torch.equal(before, parameter)
    assert (row["attempted"], row["executed"]) == (True, True)
    assert row["grad_norm"] is None
    assert row["update_norm"] is None
    assert "inside backward" in record.events("recorder_fault")[0]["text"]
