"""Attempted, executed, skipped: what the recorder says under a GradScaler, with overflow that is real."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

FUSED = [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD]


def scaler_for(device: str, **settings: Any) -> torch.amp.GradScaler:
    return torch.amp.GradScaler(device, **settings)


def overflow(model: torch.nn.Module) -> None:
    for parameter in model.parameters():
        parameter.grad *= float("inf")


def test_real_overflow_skips_ten_times_and_settles(record: Any, device: str) -> None:
    """From a scale of 2**24 fp16 autocast skips ten attempts, all with a finite loss, and settles at 16384."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    scaler = scaler_for(device, init_scale=2.0**24)
    x, y = torch.randn(64, 32, device=device), torch.randn(64, 1, device=device) * 10
    with record(model, optimizer, scaler=scaler, max_norm=1.0) as recorder:
        for batch in range(14):
            with recorder.transition(batch_id=batch) as t:
                optimizer.zero_grad()
                with torch.autocast(device, dtype=torch.float16):
                    prediction = model(x)
                loss = torch.nn.functional.mse_loss(prediction.float(), y)
                t.observe_loss(loss)
                scaler.scale(loss).backward()
                t.clip_grad_norm_()
                scaler.step(optimizer)
                scaler.update()
                executed = t.executed
            assert executed is (record.rows()[batch]["executed"] if device == "cpu" else executed)
    rows = record.rows()
    skipped = [row["row"] for row in rows if not row["executed"]]
    assert skipped == list(range(10 if device == "cpu" else len(skipped)))
    assert skipped
    assert all(row["skip_reason"] == "amp_overflow" for row in rows[: len(skipped)])
    assert all(math.isfinite(row["loss"]) for row in rows)
    assert rows[-1]["loss_scale"] == 16384 or device != "cpu"
    assert [row["loss_scale"] for row in rows[: len(skipped) + 1]] == [2.0 ** (24 - n) for n in range(len(skipped) + 1)]
    assert all(row["grad_nonfinite_params"] > 0 and row["first_nonfinite_param"] for row in rows[: len(skipped)])
    assert all(row["clip_coef"] is None for row in rows[: len(skipped)])
    assert [row["attempted_n"] for row in rows] == list(range(1, 15))
    assert rows[-1]["executed_n"] == 14 - len(skipped)
    assert rows[-1]["precision"] == "fp16"


@pytest.mark.parametrize("kind", FUSED)
@pytest.mark.parametrize("unscale", [True, False])
def test_a_fused_step_that_was_skipped_is_not_executed(record: Any, device: str, kind: Any, unscale: bool) -> None:
    model = torch.nn.Linear(4, 2).to(device)
    optimizer = kind(model.parameters(), lr=0.1, fused=True)
    scaler = scaler_for(device)
    with record(model, optimizer, scaler=scaler) as recorder:
        for batch in range(4):
            with recorder.transition(batch_id=batch) as t:
                optimizer.zero_grad()
                loss = model(torch.ones(3, 4, device=device)).square().mean()
                t.observe_loss(loss)
                scaler.scale(loss).backward()
                if batch == 2:
                    overflow(model)
                if unscale:
                    t.clip_grad_norm_()
                scaler.step(optimizer)
                scaler.update()
                assert t.executed is (batch != 2)
    rows = record.rows()
    assert [row["executed"] for row in rows] == [True, True, False, True]
    assert [row["attempted"] for row in rows] == [True] * 4
    assert [row["loss_scale"] for row in rows] == [65536, 65536, 65536, 32768]
    assert rows[2]["update_norm"] is None
    assert rows[2]["moved"] is None


def test_a_fused_optimizer_that_never_unscales_has_its_norm_in_true_units(record: Any, device: str) -> None:
    model = torch.nn.Linear(4, 1, bias=False).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
    scaler = scaler_for(device, init_scale=1024.0)
    with record(model, optimizer, scaler=scaler) as recorder, recorder.transition() as t:
        loss = model(torch.ones(1, 4, device=device)).sum()
        t.observe_loss(loss)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    row = record.rows()[0]
    assert row["grad_norm"] == pytest.approx(2.0)
    assert row["grad_norm_source"] == "at_step"
    assert row["grad_norm_is_unscaled"] is True


def test_two_optimizers_on_one_scaler_have_clocks_of_their_own(record: Any, device: str) -> None:
    first, second = torch.nn.Linear(4, 1).to(device), torch.nn.Linear(4, 1).to(device)
    model = torch.nn.ModuleDict({"first": first, "second": second})
    optimizers = {n: torch.optim.SGD(m.parameters(), lr=0.1) for n, m in (("first", first), ("second", second))}
    scaler = scaler_for(device)
    x = torch.ones(2, 4, device=device)
    with record(model, optimizers, scaler=scaler, max_norm={"first": 1.0, "second": None}) as recorder:
        for batch in range(3):
            with recorder.transition(batch_id=batch) as t:
                for name, optimizer in optimizers.items():
                    optimizer.zero_grad()
                    loss = model[name](x).square().mean()
                    t.of(name).observe_loss(loss)
                    scaler.scale(loss).backward()
                overflow(second) if batch == 1 else None
                for name, optimizer in optimizers.items():
                    t.of(name).clip_grad_norm_()
                    scaler.step(optimizer)
                scaler.update()
                assert t.of("first").executed is True
                assert t.of("second").executed is (batch != 1)
    assert record.column("executed", "first") == [True, True, True]
    assert record.column("executed", "second") == [True, False, True]
    assert record.column("executed_n", "second") == [1, 1, 2]
    assert record.column("row") == [0, 0, 1, 1, 2, 2]
    assert record.column("clip_coef", "second") == [None] * 3
    # the scale fell for both, though only one of them skipped
    assert record.column("loss_scale", "first") == [65536, 65536, 32768]


def test_nan_made_after_unscale_executes_and_the_row_shows_it(record: Any, device: str) -> None:
    model = torch.nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = scaler_for(device)
    with record(model, optimizer, scaler=scaler) as recorder, recorder.transition():
        scaler.scale(model(torch.ones(1, 2, device=device)).sum()).backward()
        scaler.unscale_(optimizer)
        model.weight.grad.fill_(float("nan"))
        scaler.step(optimizer)
        scaler.update()
    row = record.rows()[0]
    assert row["executed"] is True
    assert row["grad_nonfinite_params"] == 1
    assert row["first_nonfinite_param"] == "weight"
    assert row["grad_norm"] != row["grad_norm"]
    assert row["update_norm"] != row["update_norm"]
    assert row["moved"] is True


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("told", [True, False])
def test_own_clipping_before_or_after_unscale(record: Any, device: str, when: str, told: bool) -> None:
    """True norm 2, scale 1024: clipped too early the limit of 1 meets 2048."""
    model = torch.nn.Linear(4, 1, bias=False).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = scaler_for(device, init_scale=1024.0)
    with record(model, optimizer, scaler=scaler) as recorder, recorder.transition() as t:
        scaler.scale(model(torch.ones(1, 4, device=device)).sum()).backward()
        if when == "after":
            scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if told:
            t.observe_grad_norm(norm, max_norm=1.0)
        scaler.step(optimizer)
        scaler.update()
    row = record.rows()[0]
    assert row["grad_norm_source"] == ("observed" if told else "at_step")
    if told:
        assert row["grad_norm"] == pytest.approx(2.0)
        assert row["clip_coef"] == pytest.approx(0.5 if when == "after" else 1 / 2048, rel=1e-4)
        assert row["grad_norm_is_unscaled"] is (when == "after")
    else:
        # seen only at the step, so already clipped, and the source says so
        assert row["grad_norm"] == pytest.approx(1.0 if when == "after" else 1 / 1024, rel=1e-4)
        assert row["clip_coef"] is None


def test_users_own_unscale_before_the_recorders_clip(record: Any, device: str) -> None:
    model = torch.nn.Linear(4, 1, bias=False).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = scaler_for(device, init_scale=1024.0)
    with record(model, optimizer, scaler=scaler, max_norm=1.0) as recorder, recorder.transition() as t:
        scaler.scale(model(torch.ones(1, 4, device=device)).sum()).backward()
        scaler.unscale_(optimizer)
        assert float(t.clip_grad_norm_()) == pytest.approx(2.0)
        scaler.step(optimizer)
        scaler.update()
    assert record.rows()[0]["clip_coef"] == pytest.approx(0.5, rel=1e-5)


def test_update_once_per_optimizer(record: Any, device: str) -> None:
    models = torch.nn.ModuleList([torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)]).to(device)
    optimizers = {str(n): torch.optim.SGD(m.parameters(), lr=0.1) for n, m in enumerate(models)}
    scaler = scaler_for(device)
    with record(models, optimizers, scaler=scaler) as recorder:
        for _ in range(2):
            with recorder.transition():
                for model, optimizer in zip(models, optimizers.values(), strict=True):
                    optimizer.zero_grad()
                    scaler.scale(model(torch.ones(1, 2, device=device)).sum()).backward()
                    scaler.step(optimizer)
                    scaler.update()
    assert record.column("executed_n", "0") == [1, 2]
    assert record.column("executed_n", "1") == [1, 2]


def test_a_disabled_scaler_has_no_scale(record: Any, device: str) -> None:
    model = torch.nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = scaler_for(device, enabled=False)
    with record(model, optimizer, scaler=scaler) as recorder, recorder.transition() as t:
        scaler.scale(model(torch.ones(1, 2, device=device)).sum()).backward()
        t.clip_grad_norm_(1.0)
        scaler.step(optimizer)
        scaler.update()
    row = record.rows()[0]
    assert row["loss_scale"] is None
    assert row["executed"] is True
    assert row["attempted_n"] == 1


def test_a_scale_without_a_floor_executes_an_infinite_update(record: Any, device: str) -> None:
    """At the smallest scale a healthy gradient unscales to Inf with found_inf 0, and the step executes."""
    model = torch.nn.Linear(1, 1, bias=False).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = scaler_for(device, init_scale=2.8e-45)
    with record(model, optimizer, scaler=scaler) as recorder, recorder.transition() as t:
        loss = model(torch.ones(1, 1, device=device)).sum()
        t.observe_loss(loss)
        scaler.scale(loss).backward()
        model.weight.grad.fill_(1.0)
        t.clip_grad_norm_()
        scaler.step(optimizer)
        scaler.update()
    row = record.rows()[0]
    assert row["executed"] is True
    assert row["loss_scale"] == pytest.approx(2.8e-45, rel=0.01)
    assert row["grad_nonfinite_params"] == 1
    assert row["update_norm"] == math.inf


def test_a_scale_that_falls_without_a_skip_is_no_skip(record: Any, device: str) -> None:
    """`update(new_scale)` lowers the scale by the loop's own wish."""
    model = torch.nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = scaler_for(device)
    with record(model, optimizer, scaler=scaler) as recorder:
        for _ in range(3):
            with recorder.transition():
                optimizer.zero_grad()
                scaler.scale(model(torch.ones(1, 2, device=device)).sum()).backward()
                scaler.step(optimizer)
                scaler.update(1024.0)
    assert record.column("executed") == [True] * 3
    assert record.column("skip_reason") == [None] * 3
    assert record.column("loss_scale") == [65536, 1024, 1024]
