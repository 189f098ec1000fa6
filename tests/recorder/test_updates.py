"""How far and in which direction a step moved the parameters, against a float64 reference."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn.functional import mse_loss

from recorder.store import read_run


class Users(torch.optim.Optimizer):
    """An optimizer of the user's own: sign descent."""

    def __init__(self, parameters: Any, lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.sub_(parameter.grad.sign(), alpha=group["lr"])


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1),
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9),
    "maximize": lambda p: torch.optim.SGD(p, lr=1e-3, maximize=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=1e-2),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-3),
    "users": lambda p: Users(p, lr=1e-3),
}


def reference(before: Any, after: Any, gradients: Any, maximize: bool) -> tuple[float, float]:
    def flat(tensors: Any) -> torch.Tensor:
        return torch.cat([t.detach().double().flatten() for t in tensors])

    theta, change, gradient = flat(before), flat(after) - flat(before), flat(gradients)
    cosine = float(change @ gradient / (change.norm() * gradient.norm()))
    return float(change.norm() / theta.norm()), cosine if maximize else -cosine


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("width", [16, 700], ids=["small", "sampled"])
def test_update_ratio_and_cosine(record: Any, name: str, dtype: torch.dtype, width: int) -> None:
    torch.manual_seed(1)
    layers = [torch.nn.Linear(width, width), torch.nn.Tanh(), torch.nn.Linear(width, 1)]
    model = torch.nn.Sequential(*layers).to(dtype)
    optimizer = OPTIMIZERS[name](model.parameters())
    expected = []
    with record(model, optimizer, max_norm=1.0, deep_every=3) as recorder:
        for _ in range(5):
            x = torch.randn(16, width, dtype=dtype)
            with recorder.transition() as t:
                optimizer.zero_grad()
                loss = mse_loss(model(x).float(), x.sum(1, keepdim=True).float())
                t.observe_loss(loss)
                loss.backward()
                gradients = [p.grad.clone() for p in model.parameters()]
                before = [p.detach().clone() for p in model.parameters()]
                t.clip_grad_norm_()
                optimizer.step()
                expected.append(reference(before, list(model.parameters()), gradients, name == "maximize"))
    for row, (ratio, cosine) in zip(record.rows(), expected, strict=True):
        exact = width == 16 or row["row"] % 3 == 0
        assert row["update_kind"] == ("exact" if exact else "sampled")
        # The stated error of a sample: a strided one of at most 262,144 coordinates, largest seen 1.2e-2.
        error = 1e-5 if exact else 2e-2
        assert row["update_ratio"] == pytest.approx(ratio, rel=error)
        assert row["update_cosine"] == pytest.approx(cosine, abs=error)
        assert row["moved"] is True


def test_the_cosine_is_against_the_gradient_before_clipping_by_value(record: Any) -> None:
    """Clipping by value turns the direction, and the difference is the point."""
    model = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(2))])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(model, optimizer) as recorder, recorder.transition() as t:
        model[0].grad = torch.tensor([10.0, 1.0])
        t.measure_grad_norm()
        torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
    row = record.rows()[0]
    assert row["grad_norm"] == pytest.approx(101**0.5)
    assert row["update_cosine"] == pytest.approx(11 / (101 * 2) ** 0.5, abs=1e-6)
    assert row["clip_coef"] is None


@pytest.mark.parametrize("size", [100, 50_000, 600_000], ids=["few", "many", "sampled"])
@pytest.mark.parametrize("magnitude", [1e-30, 1.0, 1e18])
def test_ratio_and_cosine_hold_where_float32_could_not_square(record: Any, size: int, magnitude: float) -> None:
    generator = torch.Generator().manual_seed(0)
    parameter = torch.nn.Parameter(magnitude * torch.randn(size, generator=generator))
    optimizer = torch.optim.SGD([parameter], lr=0.25)
    with record(torch.nn.ParameterList([parameter]), optimizer, deep_every=0) as recorder, recorder.transition():
        parameter.grad = parameter.detach().clone()
        optimizer.step()
    row = record.rows()[0]
    assert row["update_kind"] == ("sampled" if size > 500_000 else "exact")
    assert row["update_ratio"] == pytest.approx(0.25, rel=1e-5)
    assert row["update_cosine"] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("case", ["all grads None", "lr zero", "bf16 rounds away"])
def test_executed_but_not_moved(record: Any, case: str) -> None:
    dtype = torch.bfloat16 if case.startswith("bf16") else torch.float32
    parameter = torch.nn.Parameter(torch.ones(3, dtype=dtype))
    model = torch.nn.ParameterList([parameter])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0 if case == "lr zero" else 1e-3)
    with record(model, optimizer) as recorder, recorder.transition():
        parameter.grad = None if case == "all grads None" else torch.ones_like(parameter)
        optimizer.step()
    row = record.rows()[0]
    assert row["executed"] is True
    assert row["moved"] is False
    assert row["update_ratio"] == 0
    assert row["update_cosine"] is None


@pytest.mark.parametrize("gradient", [1e-3, 1.0, 1e3, 1e6])
def test_adams_first_step_hardly_knows_the_gradients_size(record: Any, gradient: float) -> None:
    published = {1e-3: 9.999899e-4, 1.0: 9.999999e-4, 1e3: 9.999999e-4, 1e6: 9.999999e-4}
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam([parameter], lr=1e-3)
    with record(torch.nn.ParameterList([parameter]), optimizer) as recorder, recorder.transition():
        parameter.grad = torch.tensor([gradient])
        optimizer.step()
    row = record.rows()[0]
    assert row["update_norm"] == pytest.approx(published[gradient], rel=2e-7)
    assert row["grad_norm"] == pytest.approx(gradient)


@pytest.mark.parametrize(
    ("history", "published"),
    [([], 1.0), ([0.0] * 500, 1.99), ([0.0] * 2000 + [1.0] * 10, 6.10), ([0.0] * 5000 + [1.0] * 10, 6.54)],
    ids=["none", "500 zeros", "2000 zeros, 10 ones", "5000 zeros, 10 ones"],
)
def test_adams_step_by_history(record: Any, history: list[float], published: float) -> None:
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam([parameter], lr=1e-3)
    for gradient in history:
        parameter.grad = torch.tensor([gradient])
        optimizer.step()
    with record(torch.nn.ParameterList([parameter]), optimizer) as recorder, recorder.transition():
        parameter.grad = torch.ones(1)
        optimizer.step()
    row = record.rows()[0]
    assert row["update_norm"] / row["lr"] == pytest.approx(published, abs=5e-3)


@pytest.mark.parametrize(("history", "published"), [([], 1.0), ([1.0] * 30, 1.0), ([-1.0] * 30, -1.0)])
def test_adams_direction_by_history(record: Any, history: list[float], published: float) -> None:
    parameter = torch.nn.Parameter(torch.zeros(4))
    optimizer = torch.optim.Adam([parameter], lr=1e-3)
    for gradient in history:
        parameter.grad = torch.full((4,), gradient)
        optimizer.step()
    with record(torch.nn.ParameterList([parameter]), optimizer) as recorder, recorder.transition():
        parameter.grad = torch.ones(4)
        optimizer.step()
    assert record.rows()[0]["update_cosine"] == pytest.approx(published, abs=1e-5)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_a_gradient_of_zero_is_not_the_same_as_none(record: Any, set_to_none: bool) -> None:
    """Momentum and weight decay move a parameter whose gradient is zero, and leave alone one that has none."""
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.5)
    with record(model, optimizer, deep_every=1) as recorder:
        for uses_bias in (True, False):
            with recorder.transition():
                model.weight.grad = torch.ones(2, 2)
                if uses_bias:
                    model.bias.grad = torch.ones(2)
                optimizer.step()
                optimizer.zero_grad(set_to_none=set_to_none)
    layers = read_run(record.path).layers.to_pylist()
    bias = next(layer for layer in layers if layer["row"] == 1 and layer["name"] == "bias")
    if set_to_none:
        assert bias["grad_norm"] is None
        assert bias["update_ratio"] == 0
    else:
        assert bias["grad_norm"] == 0
        assert bias["update_ratio"] > 0
    assert record.column("grad_none_params") == [0, 1 if set_to_none else 0]


def test_layers_table_of_a_deep_row(record: Any) -> None:
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = copy.deepcopy(model)
    with record(model, optimizer, max_norm=1e-3, deep_every=2) as recorder:
        for step in range(3):
            with recorder.transition() as t:
                optimizer.zero_grad()
                model(torch.ones(2, 4)).square().sum().backward()
                if step == 0:
                    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
                t.clip_grad_norm_()
                optimizer.step()
    layers = read_run(record.path).layers.to_pylist()
    assert sorted({layer["row"] for layer in layers}) == [0, 2]
    for layer in layers[:4]:
        gradient, theta = gradients[layer["name"]], before.state_dict()[layer["name"]]
        assert layer["grad_norm"] == pytest.approx(float(gradient.norm()), rel=1e-6)
        assert layer["grad_absmax"] == pytest.approx(float(gradient.abs().max()), rel=1e-6)
        assert layer["grad_nonfinite"] == layer["grad_nonfinite_share"] == 0
        assert layer["param_norm"] == pytest.approx(float(theta.norm()), rel=1e-6)
    rows = record.rows()
    assert [row["activation_absmax"] is None for row in rows] == [False, True, False]


def test_a_deep_row_may_look_at_chosen_parameters_only(record: Any) -> None:
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(model, optimizer, deep_every=1, deep_parameters=["2.*"]) as recorder, recorder.transition():
        before = model[2].weight.detach().clone()
        model(torch.ones(2, 4)).square().sum().backward()
        gradient = model[2].weight.grad.clone()
        optimizer.step()
    layers = {layer["name"]: layer for layer in read_run(record.path).layers.to_pylist()}
    assert sorted(layers) == ["2.bias", "2.weight"]
    assert layers["2.weight"]["grad_norm"] == pytest.approx(float(gradient.norm()), rel=1e-6)
    assert layers["2.weight"]["update_ratio"] == pytest.approx(float(0.1 * gradient.norm() / before.norm()), rel=1e-5)
    assert record.rows()[0]["update_kind"] == "exact"


def test_the_automatic_cadence_is_told_in_the_manifest(record: Any) -> None:
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(model, optimizer, overhead_budget=0.5) as recorder:
        for _ in range(20):
            with recorder.transition():
                model(torch.ones(2, 64)).square().sum().backward()
                optimizer.step()
    manifest = read_run(record.path).manifest
    assert manifest["gradient_dtypes"] == {"optimizer": {"float32": 2}}
    chosen = manifest["deep"]
    assert chosen["mode"] == "auto"
    assert chosen["every"] >= 1
    assert chosen["cost_seconds"] > 0
    assert chosen["budget"] == 0.5
    assert record.rows()[0]["activation_absmax"] is not None
