"""The shapes that training loops have: accumulation, gating, closures, several steps, late schedulers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.functional import mse_loss


def sgd(model: torch.nn.Module, **settings: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.05, **settings)


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_a_plain_loop(record: Any, mlp: Any, batches: Any, device: str, dtype: torch.dtype | None) -> None:
    model = mlp()
    optimizer = sgd(model)
    with record(model, optimizer, max_norm=0.5) as recorder:
        for name, (x, y) in zip("abcd", batches(4), strict=True):
            with recorder.transition(batch_id=name) as t:
                optimizer.zero_grad()
                with torch.autocast(device, dtype=dtype, enabled=dtype is not None):
                    prediction = model(x)
                loss = mse_loss(prediction.float(), y)
                t.observe_loss(loss)
                loss.backward()
                norm = float(t.clip_grad_norm_())
                after = float(torch.nn.utils.get_total_norm([p.grad for p in model.parameters()]))
                optimizer.step()
            row = record.rows()[-1] if device == "cpu" else None
            if row is not None:
                assert row["loss"] == loss.item()
                assert row["grad_norm"] == pytest.approx(norm, rel=1e-12)
                assert row["clip_coef"] == pytest.approx(after / norm, rel=1e-5)
    rows = record.rows()
    assert [row["batch_id"] for row in rows] == list("abcd")
    assert [row["step"] for row in rows] == [0, 1, 2, 3]
    assert [row["micro_step"] for row in rows] == [0] * 4
    assert {row["precision"] for row in rows} == {"fp32" if dtype is None else "bf16"}
    assert all(row["executed"] and row["moved"] and row["skip_reason"] is None for row in rows)


def test_no_clipping_at_all(record: Any, mlp: Any, batches: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with record(model, optimizer) as recorder:
        for x, y in batches(2):
            with recorder.transition():
                optimizer.zero_grad()
                mse_loss(model(x), y).backward()
                norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
                optimizer.step()
    row = record.rows()[-1]
    assert row["grad_norm"] == pytest.approx(float(norm), rel=1e-6)
    assert row["grad_norm_source"] == "at_step"
    assert row["max_norm"] is None
    assert row["clip_coef"] is None
    assert row["loss"] is None


def test_accumulation_with_one_clip_for_the_effective_batch(record: Any, mlp: Any, batches: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    sizes = [8, 3, 5, 8, 8, 2]
    with record(model, optimizer, max_norm=1.0) as recorder:
        for index, ((x, y), size) in enumerate(zip(batches(6), sizes, strict=True)):
            last = index % 3 == 2
            with recorder.transition(batch_id=index, accumulating=not last) as t:
                loss = mse_loss(model(x[:size]), y[:size])
                t.observe_loss(loss, count=size)
                (loss * size / 16).backward()
                if last:
                    t.clip_grad_norm_()
                    optimizer.step()
                    optimizer.zero_grad()
    rows = record.rows()
    assert [row["step"] for row in rows] == [0, 0, 0, 1, 1, 1]
    assert [row["micro_step"] for row in rows] == [0, 1, 2, 0, 1, 2]
    assert [row["attempted"] for row in rows] == [False, False, True] * 2
    assert [row["skip_reason"] for row in rows] == ["accumulating", "accumulating", None] * 2
    assert [row["loss_count"] for row in rows] == sizes
    assert all(row["loss_sum"] == row["loss"] * row["loss_count"] for row in rows)
    assert [row["grad_norm"] is None for row in rows] == [True, True, False] * 2
    assert rows[-1]["executed_n"] == 2


def test_gating_by_the_user(record: Any, mlp: Any, batches: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    with record(model, optimizer) as recorder:
        for index, (x, y) in enumerate(batches(3)):
            with recorder.transition() as t:
                optimizer.zero_grad()
                loss = mse_loss(model(x), y)
                t.observe_loss(loss)
                loss.backward()
                if index == 1:
                    t.skip("gated")
                else:
                    optimizer.step()
    assert record.column("skip_reason") == [None, "gated", None]
    assert record.column("attempted_n") == [1, 1, 2]
    assert record.column("step") == [0, 1, 1]


def test_loss_tested_before_backward_and_no_update_on_that_path(record: Any, device: str) -> None:
    """The third document's loop: a non-finite loss leaves before backward, a non-finite gradient after unscale_."""
    model = torch.nn.Linear(4, 1).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler(device)
    with record(model, optimizer, scaler=scaler, max_norm=1.0) as recorder:
        for index in range(5):
            x = torch.ones(2, 4, device=device)
            with recorder.transition(batch_id=index) as t:
                optimizer.zero_grad(set_to_none=True)
                loss = model(x).square().mean() * (float("nan") if index == 1 else 1.0)
                t.observe_loss(loss)
                if not t.should_step:
                    continue
                scaler.scale(loss).backward()
                if index == 3:
                    model.weight.grad.fill_(float("inf"))
                t.clip_grad_norm_()
                if not t.should_step:
                    scaler.update()
                    continue
                scaler.step(optimizer)
                scaler.update()
    rows = record.rows()
    assert [row["skip_reason"] for row in rows] == [None, "nonfinite_loss", None, "nonfinite_grad", None]
    assert [row["attempted"] for row in rows] == [True, False, True, False, True]
    assert [row["executed_n"] for row in rows] == [1, 1, 2, 2, 3]
    assert rows[1]["grad_norm"] is None
    assert rows[3]["first_nonfinite_param"] == "weight"
    assert [row["loss_scale"] for row in rows] == [65536, 65536, 65536, 65536, 32768]


def test_several_steps_in_one_transition(record: Any, device: str) -> None:
    """n_critic: the critic steps three times while the generator steps once; each step is a row."""
    critic, generator = torch.nn.Linear(4, 1).to(device), torch.nn.Linear(4, 4).to(device)
    model = torch.nn.ModuleDict({"critic": critic, "generator": generator})
    optimizers = {"critic": sgd(critic), "generator": sgd(generator)}
    losses = []
    with record(model, optimizers, max_norm=1.0) as recorder:
        for batch in range(2):
            with recorder.transition(batch_id=batch) as t:
                for _ in range(3):
                    optimizers["critic"].zero_grad()
                    loss = critic(torch.randn(2, 4, device=device)).square().mean()
                    losses.append(loss.item())
                    t.of("critic").observe_loss(loss)
                    loss.backward()
                    t.of("critic").clip_grad_norm_()
                    optimizers["critic"].step()
                optimizers["generator"].zero_grad()
                loss = critic(generator(torch.randn(2, 4, device=device))).mean()
                t.of("generator").observe_loss(loss)
                loss.backward()
                t.of("generator").clip_grad_norm_()
                optimizers["generator"].step()
    critics = record.rows("critic")
    assert [row["loss"] for row in critics] == losses
    assert [row["attempted_n"] for row in critics] == [1, 2, 3, 4, 5, 6]
    assert [row["batch_id"] for row in critics] == ["0"] * 3 + ["1"] * 3
    assert [row["micro_step"] for row in critics] == [0, 1, 2] * 2
    assert all(row["grad_norm"] is not None and row["clip_coef"] is not None for row in critics)
    assert len({row["row"] for row in critics}) == 6
    assert record.column("executed_n", "generator") == [1, 2]
    assert [row["step"] for row in critics[:3]] == [0, 0, 0]


def test_closure_optimizer(record: Any, mlp: Any, batches: Any) -> None:
    """LBFGS evaluates its closure several times; the row holds the loss and gradient of the first."""
    model = mlp()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)
    seen: list[tuple[float, float]] = []
    with record(model, optimizer) as recorder:
        for x, y in batches(2):
            evaluations: list[tuple[float, float]] = []

            def closure(x: Any = x, y: Any = y, evaluations: Any = evaluations) -> torch.Tensor:
                optimizer.zero_grad()
                loss = mse_loss(model(x), y)
                loss.backward()
                norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
                evaluations.append((loss.item(), float(norm)))
                return loss

            with recorder.transition():
                optimizer.step(closure)
            seen.append(evaluations[0])
            assert len(evaluations) > 1
    rows = record.rows()
    assert [row["loss"] for row in rows] == [loss for loss, _ in seen]
    assert [row["grad_norm"] for row in rows] == pytest.approx([norm for _, norm in seen], rel=1e-6)
    assert [row["executed_n"] for row in rows] == [1, 2]
    assert all(row["moved"] and row["update_cosine"] is not None for row in rows)


def test_parameter_groups(record: Any, mlp: Any, batches: Any) -> None:
    model = mlp()
    groups = [{"params": model[0].parameters(), "lr": 0.1}, {"params": model[2].parameters(), "lr": 0.01}]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    with record(model, optimizer, max_norm=1.0) as recorder:
        for x, y in batches(1):
            with recorder.transition() as t:
                mse_loss(model(x), y).backward()
                squares = [sum(float(p.grad.square().sum()) for p in model[n].parameters()) for n in (0, 2)]
                t.clip_grad_norm_()
                optimizer.step()
    row = record.rows()[0]
    assert row["lr"] == 0.1
    assert row["top_group"] == f"group {squares.index(max(squares))}"
    assert row["top_group_share"] == pytest.approx(max(squares) / sum(squares), rel=1e-5)


def test_groups_added_and_layers_unfrozen_while_running_are_followed(record: Any, mlp: Any, batches: Any) -> None:
    model = mlp()
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.05)
    norms = []
    with record(model, optimizer) as recorder:
        for index, (x, y) in enumerate(batches(3)):
            if index == 1:
                model[0].requires_grad_(True)
            if index == 2:
                optimizer.add_param_group({"params": model[0].parameters()})
            owned = [p for group in optimizer.param_groups for p in group["params"]]
            with recorder.transition():
                optimizer.zero_grad()
                mse_loss(model(x), y).backward()
                norms.append(float(torch.nn.utils.get_total_norm([p.grad for p in owned if p.grad is not None])))
                optimizer.step()
    assert record.column("grad_norm") == pytest.approx(norms, rel=1e-6)


@pytest.mark.parametrize("inside", [True, False])
def test_a_scheduler_stepped_inside_or_after_the_transition(record: Any, mlp: Any, batches: Any, inside: bool) -> None:
    model = mlp()
    optimizer = sgd(model)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    with record(model, optimizer, scheduler=scheduler) as recorder:
        for x, y in batches(3):
            with recorder.transition():
                optimizer.zero_grad()
                mse_loss(model(x), y).backward()
                optimizer.step()
                if inside:
                    scheduler.step()
            if not inside:
                scheduler.step()
    assert record.column("scheduled") == [1, 1, 1]
    assert record.column("scheduled_n") == [1, 2, 3]
    assert record.column("lr") == [0.05, 0.025, 0.0125]


def schedulers(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    s = torch.optim.lr_scheduler
    return {
        "plateau": s.ReduceLROnPlateau(optimizer),
        "one_cycle": s.OneCycleLR(optimizer, max_lr=0.1, total_steps=20),
        "chained": s.ChainedScheduler([s.ExponentialLR(optimizer, 0.9), s.ConstantLR(optimizer)]),
        "sequential": s.SequentialLR(optimizer, [s.ConstantLR(optimizer), s.ExponentialLR(optimizer, 0.9)], [2]),
    }


@pytest.mark.filterwarnings("ignore:Detected call of:UserWarning")
@pytest.mark.parametrize("kind", ["plateau", "one_cycle", "chained", "sequential"])
def test_every_kind_of_scheduler_has_its_clock(record: Any, mlp: Any, batches: Any, kind: str) -> None:
    model = mlp()
    optimizer = sgd(model)
    scheduler = schedulers(optimizer)[kind]
    lrs = []
    with record(model, optimizer, scheduler=scheduler) as recorder:
        for index, (x, y) in enumerate(batches(6)):
            with recorder.transition():
                optimizer.zero_grad()
                loss = mse_loss(model(x), y)
                loss.backward()
                lrs.append(optimizer.param_groups[0]["lr"])
                optimizer.step()
                if index % 2:  # once per "epoch" of two batches
                    scheduler.step(*([loss.item()] if kind == "plateau" else []))
    assert record.column("scheduled") == [0, 1, 0, 1, 0, 1]
    assert record.column("scheduled_n") == [0, 1, 1, 2, 2, 3]
    assert record.column("lr") == lrs


def test_a_scheduler_made_after_the_recorder(record: Any, mlp: Any, batches: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    recorder = record(model, optimizer)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    for x, y in batches(2):
        with recorder.transition():
            optimizer.zero_grad()
            mse_loss(model(x), y).backward()
            optimizer.step()
            scheduler.step()
    recorder.close()
    assert record.column("executed") == [True, True]
    assert record.column("lr") == [0.05, 0.025]


def test_callbacks_without_with(record: Any, mlp: Any, batches: Any) -> None:
    model = mlp()
    optimizer = sgd(model)
    recorder = record(model, optimizer)
    for index, (x, y) in enumerate(batches(3)):
        t = recorder.begin(batch_id=index, step=10 + index)
        optimizer.zero_grad()
        loss = mse_loss(model(x), y)
        t.observe_loss(loss)
        loss.backward()
        optimizer.step()
        recorder.end()
    recorder.close()
    assert record.column("step") == [10, 11, 12]
    assert record.column("batch_id") == ["0", "1", "2"]


def test_resume_into_the_same_directory(record: Any, mlp: Any, batches: Any) -> None:
    """Steps go back to the checkpoint's, rows and clocks go on, and the run says what came back."""
    model = mlp()
    optimizer = sgd(model)
    with record(model, optimizer) as recorder:
        for x, y in batches(3):
            with recorder.transition():
                optimizer.zero_grad()
                mse_loss(model(x), y).backward()
                optimizer.step()
        recorder.checkpoint("step-1")
    with record(model, optimizer, resume=True) as recorder:
        recorder.resumed("step-1", restored=["model"])
        for step, (x, y) in enumerate(batches(2), start=1):
            with recorder.transition(step=step):
                optimizer.zero_grad()
                mse_loss(model(x), y).backward()
                optimizer.step()
    assert record.column("row") == [0, 1, 2, 3, 4]
    assert record.column("segment") == [0, 0, 0, 1, 1]
    assert record.column("step") == [0, 1, 2, 1, 2]
    assert record.column("executed_n") == [1, 2, 3, 4, 5]
    [resume] = record.events("resume")
    assert resume["from_checkpoint"] == "step-1"
    assert resume["restored"] == ["model"]


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")
def test_compiled_model_and_step(record: Any, mlp: Any, batches: Any) -> None:
    model = mlp()
    compiled = torch.compile(model, backend="eager")
    optimizer = sgd(model)
    step = torch.compile(optimizer.step, backend="eager")
    with record(compiled, optimizer, max_norm=1.0) as recorder:
        for x, y in batches(3):
            with recorder.transition() as t:
                optimizer.zero_grad()
                loss = mse_loss(compiled(x), y)
                t.observe_loss(loss)
                loss.backward()
                t.clip_grad_norm_()
                step()
    torch._dynamo.reset()
    assert record.column("executed_n") == [1, 2, 3]
    assert all(value is not None for value in record.column("update_cosine"))
    # no hook is set where code is compiled, so nothing is claimed of the forward
    assert record.column("precision") == record.column("activation_absmax") == [None] * 3


class SharpnessAware(torch.optim.Optimizer):
    """SAM around SGD: climb to the neighbour first, then descend from there."""

    def __init__(self, parameters: Any, lr: float, rho: float) -> None:
        super().__init__(parameters, {"lr": lr, "rho": rho})
        self.climbed: list[torch.Tensor] = []

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        parameters = [p for group in self.param_groups for p in group["params"]]
        if not self.climbed:
            norm = torch.nn.utils.get_total_norm([p.grad for p in parameters])
            self.climbed = [p.grad * self.param_groups[0]["rho"] / norm for p in parameters]
            for p, climb in zip(parameters, self.climbed, strict=True):
                p.add_(climb)
        else:
            for p, climb in zip(parameters, self.climbed, strict=True):
                p.sub_(climb + self.param_groups[0]["lr"] * p.grad)
            self.climbed = []


def test_sharpness_aware_minimisation_steps_twice_in_a_transition(record: Any, mlp: Any, batches: Any) -> None:
    model = mlp()
    optimizer = SharpnessAware(model.parameters(), lr=0.05, rho=0.1)
    losses, norms = [], []
    with record(model, optimizer) as recorder:
        for index, (x, y) in enumerate(batches(2)):
            with recorder.transition(batch_id=index) as t:
                for _ in range(2):
                    optimizer.zero_grad()
                    loss = mse_loss(model(x), y)
                    t.observe_loss(loss)
                    loss.backward()
                    losses.append(loss.item())
                    norms.append(float(torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])))
                    optimizer.step()
    rows = record.rows()
    assert [row["loss"] for row in rows] == losses
    assert [row["grad_norm"] for row in rows] == pytest.approx(norms, rel=1e-6)
    assert [(row["step"], row["micro_step"], row["row"]) for row in rows] == [
        (0, 0, 0),
        (0, 1, 1),
        (2, 0, 2),
        (2, 1, 3),
    ]
    # the climb goes against descent, which is what the cosine of the first step of each pair says
    assert [row["update_cosine"] for row in rows[::2]] == pytest.approx([-1.0, -1.0], abs=1e-6)


def test_adaptive_clipping_by_the_loop_itself(record: Any, mlp: Any, batches: Any) -> None:
    """Each tensor is cut to a share of its own norm, so the direction turns; the norm recorded is the one before."""
    model = mlp()
    optimizer = sgd(model)
    with record(model, optimizer) as recorder:
        for x, y in batches(1):
            with recorder.transition() as t:
                mse_loss(model(x), y).backward()
                norm = float(torch.nn.utils.get_total_norm([p.grad for p in model.parameters()]))
                gradient = torch.cat([p.grad.flatten() for p in model.parameters()]).double()
                t.measure_grad_norm()
                for p in model.parameters():
                    p.grad.mul_(min(1.0, 0.01 * float(p.detach().norm()) / float(p.grad.norm())))
                used = torch.cat([p.grad.flatten() for p in model.parameters()]).double()
                optimizer.step()
    row = record.rows()[0]
    assert row["grad_norm"] == pytest.approx(norm, rel=1e-6)
    assert row["clip_coef"] is None
    cosine = float(gradient @ used / (gradient.norm() * used.norm()))
    assert cosine < 0.99
    assert row["update_cosine"] == pytest.approx(cosine, abs=1e-5)
