"""Norms, flags and factors that must be right at the ends of the number formats."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest
import torch

from recorder.probes import dot, norm
from recorder.store import read_run


def step_with_gradients(record: Any, gradients: list[torch.Tensor], **settings: Any) -> dict[str, Any]:
    """One transition in which the gradients are as given; the recorder clips where `max_norm` is set."""
    model = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros_like(g)) for g in gradients])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(model, optimizer, **settings) as recorder, recorder.transition() as t:
        for parameter, gradient in zip(model, gradients, strict=True):
            parameter.grad = gradient.clone()
        t.clip_grad_norm_()
        record.left = [p.grad.clone() for p in model]
        optimizer.step()
    row: dict[str, Any] = record.rows()[0]
    return row


@pytest.mark.parametrize(
    "gradient",
    [
        torch.full((10,), 1e20),
        torch.full((10,), 1e-30),
        torch.full((100_000,), 300.0, dtype=torch.float16),
        torch.full((1000,), 3e38, dtype=torch.bfloat16),
        torch.full((1000,), 1e-25, dtype=torch.bfloat16),
        torch.full((10,), 1e200, dtype=torch.float64),
        torch.cat([torch.full((10,), 1e-22), torch.zeros(10)]),
        torch.linspace(-3, 3, 1001),
    ],
    ids=["fp32-huge", "fp32-tiny", "fp16-many", "bf16-huge", "bf16-tiny", "fp64-huge", "fp32-denormal", "plain"],
)
def test_a_norm_equals_its_float64_reference(record: Any, gradient: torch.Tensor) -> None:
    row = step_with_gradients(record, [gradient, torch.zeros(3, dtype=gradient.dtype)])
    largest = float(gradient.abs().max())
    reference = float((gradient.double() / largest).norm()) * largest
    assert row["grad_norm"] == pytest.approx(reference, rel=1e-6)
    assert row["grad_nonfinite_params"] == 0


def test_a_finite_gradient_whose_squares_overflow_is_clipped_right(record: Any) -> None:
    row = step_with_gradients(record, [torch.full((4,), 1e20)], max_norm=1.0)
    assert row["clip_coef"] == pytest.approx(5e-21, rel=1e-5)
    assert float(record.left[0].norm()) == pytest.approx(1.0, rel=1e-4)


def test_the_first_of_several_non_finite_gradients_is_named(record: Any) -> None:
    gradients = [torch.ones(3), torch.tensor([1.0, math.nan]), torch.tensor([math.inf])]
    row = step_with_gradients(record, gradients)
    assert row["grad_nonfinite_params"] == 2
    assert row["first_nonfinite_param"] == "1"
    assert math.isnan(row["grad_norm"])


def test_a_non_finite_gradient_is_left_as_it_was(record: Any) -> None:
    """torch's own clipping would leave [nan, 0] of [inf, 1]."""
    row = step_with_gradients(record, [torch.tensor([math.inf, 1.0])], max_norm=1.0)
    assert record.left[0].tolist() == [math.inf, 1.0]
    assert row["grad_norm"] == math.inf
    assert row["clip_coef"] is None


def test_one_bad_layer_throttles_every_layer(record: Any) -> None:
    layers = [torch.full((4, 4), v) for v in (0.05, 0.05, 100.0)]
    row = step_with_gradients(record, layers, max_norm=1.0)
    assert row["grad_norm"] == pytest.approx(400.0, rel=1e-6)
    assert row["clip_coef"] == pytest.approx(0.0025, rel=1e-5)
    assert [float(g.norm()) for g in record.left] == pytest.approx([0.0005, 0.0005, 1.0], rel=1e-5)
    assert row["top_group"] == "2"
    assert row["top_group_share"] == pytest.approx(1.0, abs=1e-6)


def test_the_worked_vector(record: Any) -> None:
    row = step_with_gradients(record, [torch.tensor([6.0, 8.0])], max_norm=2.0)
    assert row["grad_norm"] == pytest.approx(10.0)
    assert row["clip_coef"] == pytest.approx(0.2, rel=1e-6)
    assert record.left[0].tolist() == pytest.approx([1.2, 1.6], rel=1e-6)
    assert row["update_norm"] == pytest.approx(0.2, rel=1e-6)


def test_a_norm_under_the_limit_has_a_factor_of_one_and_an_untouched_gradient(record: Any) -> None:
    gradient = torch.tensor([0.3, 0.4])
    row = step_with_gradients(record, [gradient], max_norm=1.0)
    assert row["clip_coef"] == 1.0
    assert torch.equal(record.left[0], gradient)


def test_tied_sparse_complex_frozen_and_unused_parameters(record: Any) -> None:
    class Odd(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(10, 4, sparse=True)
            self.one = torch.nn.Linear(4, 4, bias=False)
            self.tied = self.one
            self.phase = torch.nn.Parameter(torch.ones(1, dtype=torch.complex64))
            self.frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
            self.unused = torch.nn.Parameter(torch.ones(2))

    model = Odd()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(model, optimizer) as recorder, recorder.transition() as t:
        hidden = model.tied(model.one(model.embedding(torch.tensor([1, 1, 2]))))
        loss = hidden.sum() + (model.phase * (3 - 4j)).real.sum()
        t.observe_loss(loss)
        loss.backward()
        t.measure_grad_norm()
        squares = [
            float(model.embedding.weight.grad.to_dense().square().sum()),
            float(model.one.weight.grad.square().sum()),
            float(model.phase.grad.abs().square().sum()),
        ]
        optimizer.step()
    row = record.rows()[0]
    assert squares[2] == pytest.approx(25.0)
    assert row["grad_norm"] == pytest.approx(math.sqrt(sum(squares)), rel=1e-6)
    assert row["grad_none_params"] == 1
    assert row["moved"] is True
    assert row["update_cosine"] == pytest.approx(1.0, abs=1e-6)


def test_no_gradient_at_all_is_a_norm_of_zero_and_no_movement(record: Any) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(model, optimizer) as recorder, recorder.transition():
        optimizer.step()
    row = record.rows()[0]
    assert row["grad_norm"] == 0
    assert row["grad_none_params"] == 2
    assert row["executed"] is True
    assert row["moved"] is False
    assert row["update_ratio"] == 0
    assert row["update_cosine"] is None


def test_the_same_loss_with_a_hundred_times_the_gradient(record: Any) -> None:
    """Squared error of residual 1 at inputs 1, 10 and 100: gradients 2, 20 and 200."""
    for x, gradient in ((1.0, 2.0), (10.0, 20.0), (100.0, 200.0)):
        model = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.ones_(model.weight)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        with record(model, optimizer, resume=True) as recorder, recorder.transition() as t:
            loss = (model(torch.tensor([x])) - (x - 1.0)).square().sum()
            t.observe_loss(loss)
            loss.backward()
            t.clip_grad_norm_()
            optimizer.step()
        row = record.rows()[-1]
        assert row["loss"] == 1.0
        assert row["grad_norm"] == pytest.approx(gradient)


def test_quantiles_parts_inputs_and_user_fields(record: Any) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = torch.arange(101.0)
    with record(model, optimizer) as recorder, recorder.transition() as t:
        t.observe_inputs({"x": torch.tensor([1.0, -7.0]), "mask": torch.tensor([True])}, [torch.tensor([3])])
        t.observe_loss(losses.mean(), count=101, per_example=losses, parts={"aux": torch.tensor(0.25)})
        t.record(domain="code", seq_len=128, weight=torch.tensor(2.0))
    row = record.rows()[0]
    assert (row["loss_p50"], row["loss_p99"], row["loss_max"]) == (50.0, 99.0, 100.0)
    assert row["loss_sum"] == pytest.approx(5050.0)
    assert row["loss_count"] == 101
    assert row["input_absmax"] == 7.0
    assert (row["user_domain"], row["user_seq_len"], row["user_weight"]) == ("code", 128, 2.0)
    assert row["user_loss_aux"] == 0.25


def test_quantiles_of_many_losses_are_taken_on_deep_rows_from_a_sample(record: Any) -> None:
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = torch.arange(1_000_000.0).reshape(1000, 1000)
    with record(model, optimizer, deep_every=2) as recorder:
        for _ in range(3):
            with recorder.transition() as t:
                t.observe_loss(losses.mean(), per_example=losses)
    rows = record.rows()
    assert [row["loss_p99"] is None for row in rows] == [False, True, False]
    assert rows[0]["loss_p50"] == pytest.approx(500_000, rel=1e-3)
    assert rows[0]["loss_p99"] == pytest.approx(990_000, rel=1e-3)
    assert rows[0]["loss_max"] == 999_999


def test_the_first_module_with_a_non_finite_output_and_the_buffers_it_left(record: Any) -> None:
    class Logarithm(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.log()

    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), Logarithm(), torch.nn.BatchNorm1d(3))
    torch.nn.init.zeros_(model[0].weight)
    torch.nn.init.zeros_(model[0].bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with record(model, optimizer, deep_every=1) as recorder, recorder.transition() as t:
        t.observe_loss(model(torch.ones(4, 3)).sum())
    row = record.rows()[0]
    assert row["first_nonfinite_module"] == "2"
    assert math.isnan(row["activation_absmax"])
    assert row["nonfinite_buffers"] == 2


def test_the_layers_say_which_share_of_a_gradient_is_not_finite(record: Any) -> None:
    gradients = [torch.tensor([1.0, math.nan, math.inf, 2.0]), torch.ones(3)]
    step_with_gradients(record, gradients, deep_every=1)
    bad, good = read_run(record.path).layers.to_pylist()
    assert (bad["grad_nonfinite"], bad["grad_nonfinite_share"]) == (2, 0.5)
    assert (good["grad_nonfinite"], good["grad_nonfinite_share"]) == (0, 0.0)


def test_small_products_beside_large_ones_of_the_same_sign_are_not_lost() -> None:
    vector = torch.full((100_000,), 0.08)
    vector[:700] = 100.0  # as one row of a weight's gradient may be
    wide = vector.double()
    assert dot(vector, vector) == pytest.approx(float(wide @ wide), rel=1e-6)


def test_products_of_vectors_keep_to_the_threads_that_torch_was_given() -> None:
    """numpy's BLAS would take every core from 10,000 numbers on, and wait for each of them on a busy machine."""
    vector = torch.randn(15_000)
    own, all_threads = time.thread_time(), time.process_time()
    for _ in range(2_000):
        norm(vector)
        dot(vector, vector)
    own, all_threads = time.thread_time() - own, time.process_time() - all_threads
    assert all_threads < 1.2 * own
