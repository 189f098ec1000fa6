"""Captured batches fed again: what decides between explanations, on the published experiments and their like."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

from recorder import CapturePolicy, above
from recorder.capture import captures_of, read_capture
from recorder.replay.replay import result_of
from recorder.replay.setting import Built


def loss_of_pair(model: nn.Module, batch: Any) -> torch.Tensor:
    x, y = batch
    return mse_loss(model(x).to(y.dtype), y)


def replayed(path: Path, built: Built, row: int, **changed: Any) -> dict[str, Any]:
    """The result for one row, with its comparisons by id; `changed` replaces contents of the capture."""
    found = [read_capture(each) for each in captures_of(path)]
    capture = next(c for c in found if c.row == row)
    contents = {name: value for name, value in {**capture.contents, **changed}.items() if value is not None}
    others = [c for c in found if c is not capture]
    result = result_of(built, replace(capture, contents=contents), others)
    return {**result, "verdicts": {c["id"]: c["verdict"] for c in result["comparisons"]}}


def stability(record: Any, dtype: torch.dtype, max_norm: float | None) -> Built:
    """The fourth document's loop: x is 100,000 times larger at step 6."""

    def build() -> nn.Module:
        model = nn.Linear(1, 1, bias=False)
        nn.init.constant_(model.weight, 0.25)
        return model

    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    scaler = torch.amp.GradScaler("cpu", enabled=dtype is torch.float16)
    big = CapturePolicy(triggers=[above("loss", 1e6)], batches=3)
    with record(model, optimizer, scaler=scaler, max_norm=max_norm, capture=big) as recorder:
        for step in range(12):
            x, y = torch.tensor([[100_000.0 if step == 6 else 1.0]]), torch.zeros(1, 1)
            with recorder.transition(batch_id=step) as t:
                t.observe_batch((x, y))
                optimizer.zero_grad()
                with torch.autocast("cpu", dtype=dtype):
                    predictions = model(x)
                loss = mse_loss(predictions.float(), y)
                t.observe_loss(loss)
                scaler.scale(loss).backward()
                t.clip_grad_norm_()
                scaler.step(optimizer)
                scaler.update()
    return Built(build(), loss_of_pair)


def test_an_overflow_of_fp16_is_one_of_range(record: Any) -> None:
    built = stability(record, torch.float16, None)
    result = replayed(record.path, built, 6)
    assert result["reproduced"]["verdict"] == "supports"
    finite = {p["label"]: p["finite"] for p in result["precisions"]}
    assert finite == {"fp64": True, "fp32": True, "bf16": True, "fp16": False}
    assert result["verdicts"]["numerical_range"] == "supports"
    assert result["verdicts"]["arithmetic"] == "refutes"
    assert result["verdicts"]["batch"] == "supports"


@pytest.mark.parametrize("max_norm", [None, 1.0], ids=["exploding", "clipped"])
def test_an_outlier_that_bf16_holds_is_no_matter_of_range(record: Any, max_norm: float | None) -> None:
    built = stability(record, torch.bfloat16, max_norm)
    result = replayed(record.path, built, 6)
    assert result["reproduced"]["verdict"] == "supports"
    assert "to the last bit" in result["reproduced"]["outcome"]
    assert result["verdicts"]["numerical_range"] == "refutes"
    assert result["verdicts"]["batch"] == "supports"
    after = {u["label"]: u["loss_after"] for u in result["updates"]}
    assert after["own history, unclipped"] > 1e15
    if max_norm is None:
        assert result["verdicts"]["clipping"] == "does not tell"
    else:
        assert after["own history, clipped"] < 1e10
        assert result["verdicts"]["clipping"] == "supports"


def test_a_derivative_without_a_value_is_non_finite_in_every_precision(record: Any) -> None:
    class Root(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3, bias=False)
            nn.init.eye_(self.inner.weight)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x).sum(1, keepdim=True).abs().sqrt()

    model = Root()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with record(model, optimizer, capture=CapturePolicy()) as recorder:
        for step in range(5):
            x = torch.zeros(4, 3) if step == 3 else torch.ones(4, 3)
            with recorder.transition(batch_id=step) as t:
                t.observe_batch((x, torch.zeros(4, 1)))
                optimizer.zero_grad()
                loss = mse_loss(model(x), torch.full((4, 1), 2.0))
                t.observe_loss(loss)
                loss.backward()
                t.clip_grad_norm_()
                if t.should_step:
                    optimizer.step()
    built = Built(Root(), lambda m, batch: mse_loss(m(batch[0]), torch.full((4, 1), 2.0, dtype=batch[0].dtype)))
    result = replayed(record.path, built, 3)
    assert all(not p["finite"] and p["first_parameter"] == "inner.weight" for p in result["precisions"])
    assert result["verdicts"]["arithmetic"] == "supports"
    assert result["verdicts"]["numerical_range"] == "refutes"


def build_regression(width: int = 32) -> nn.Module:
    return nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, 1))


def test_the_published_step_raises_the_loss_of_its_own_batch(record: Any) -> None:
    """The first document's row 123: 0.28032 before the step, 0.29854 after it."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    w_true = torch.randn(8, 1)
    torch.manual_seed(3)
    model = build_regression()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    with record(model, optimizer, max_norm=1.0, capture=CapturePolicy()) as recorder:
        for batch_id in range(124):
            x = torch.randn(4, 8)
            with recorder.transition(batch_id=batch_id) as t:
                t.observe_batch((x, x @ w_true))
                optimizer.zero_grad()
                loss = mse_loss(model(x), x @ w_true)
                t.observe_loss(loss)
                loss.backward()
                t.clip_grad_norm_()
                if batch_id == 123:
                    recorder.capture("the published row")
                optimizer.step()
    result = replayed(record.path, Built(build_regression(), loss_of_pair), 123)
    assert "to the last bit" in result["reproduced"]["outcome"]
    step = next(u for u in result["updates"] if u["label"] == "own history, clipped")
    assert round(step["loss_before"], 5) == 0.28032
    assert round(step["loss_after"], 5) == 0.29854
    assert round(step["update_ratio"], 5) == 0.00341


def test_an_optimizer_that_lost_its_history(record: Any) -> None:
    """An ordinary batch; the state has seen eight steps of 308."""
    torch.manual_seed(1)
    model = build_regression()
    w_true = torch.randn(8, 1)

    def adam() -> torch.optim.Optimizer:
        return torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.999))

    def train(optimizer: torch.optim.Optimizer, rows: range, captured: int, **settings: Any) -> None:
        with record(model, optimizer, capture=CapturePolicy(triggers=[]), **settings) as recorder:
            for index in rows:
                x = torch.randn(256, 8)
                with recorder.transition(batch_id=index) as t:
                    t.observe_batch((x, x @ w_true))
                    optimizer.zero_grad()
                    loss = mse_loss(model(x), x @ w_true)
                    t.observe_loss(loss)
                    loss.backward()
                    t.clip_grad_norm_()
                    if index == captured:
                        recorder.capture("asked for")
                    optimizer.step()

    train(adam(), range(300), 299)
    train(adam(), range(300, 309), 308, resume=True)
    result = replayed(record.path, Built(build_regression(), loss_of_pair), 308)
    assert result["verdicts"]["batch"] == "refutes"
    assert result["verdicts"]["optimizer_lost"] == "supports"
    lost = next(c for c in result["comparisons"] if c["id"] == "optimizer_lost")
    assert "8 of the 308 steps" in lost["outcome"]
    whole = replayed(record.path, Built(build_regression(), loss_of_pair), 299)
    assert whole["verdicts"]["optimizer_lost"] != "supports"


def noisy() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.Dropout(0.3), nn.Linear(32, 1))


def noisy_run(record: Any) -> None:
    torch.manual_seed(2)
    model = noisy()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with record(model, optimizer, capture=CapturePolicy()) as recorder:
        for index in range(40):
            x = torch.randn(16, 8) * (20 if index == 30 else 1)
            with recorder.transition(batch_id=index) as t:
                t.observe_batch((x, x.sum(1, keepdim=True)))
                optimizer.zero_grad()
                loss = loss_of_pair(model, (x, x.sum(1, keepdim=True)))
                t.observe_loss(loss)
                loss.backward()
                t.clip_grad_norm_()
                optimizer.step()


def test_dropout_and_batch_norm_come_out_bit_for_bit(record: Any) -> None:
    noisy_run(record)
    result = replayed(record.path, Built(noisy(), loss_of_pair), 30)
    assert "to the last bit" in result["reproduced"]["outcome"]
    assert result["verdicts"]["batch"] == "supports"


def test_without_its_random_state_a_replay_says_what_is_missing_and_judges_nothing(record: Any) -> None:
    noisy_run(record)
    torch.manual_seed(99)
    result = replayed(record.path, Built(noisy(), loss_of_pair), 30, rng=None)
    assert result["reproduced"]["verdict"] == "refutes"
    assert "Dropout" in result["reproduced"]["outcome"]
    assert set(result["verdicts"].values()) == {"does not tell"}


def test_without_its_buffers_a_replay_in_evaluation_mode_says_so(record: Any) -> None:
    noisy_run(record)
    result = replayed(record.path, Built(noisy(), loss_of_pair), 30, buffers=None, modes={}, training=False)
    assert result["reproduced"]["verdict"] == "refutes"
    assert "buffers (1.running_mean" in result["reproduced"]["outcome"]


def test_a_batch_that_is_high_at_any_parameters(record: Any) -> None:
    noisy_run(record)
    built = Built(noisy(), loss_of_pair, fresh=lambda: (torch.randn(16, 8), torch.zeros(16, 1)))
    result = replayed(record.path, built, 30)
    labels = [b["label"] for b in result["batches"]]
    assert labels == ["row 26", "row 27", "row 28", "row 29", "a fresh batch"]
    assert result["verdicts"]["batch"] == "supports"


@pytest.mark.parametrize("most", [4, 0], ids=["beside ordinary rows", "beside captures alone"])
def test_a_batch_is_not_cleared_by_others_that_were_captured_for_being_bad(record: Any, most: int) -> None:
    """A poisoned sample that a shuffled loader puts into another batch each epoch."""
    torch.manual_seed(2)
    model = build_regression()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with record(model, optimizer, max_norm=1.0, capture=CapturePolicy()) as recorder:
        for row in range(140):
            x = torch.randn(16, 8)
            y = x.sum(1, keepdim=True)
            if row in (50, 90, 130):
                x[3], y[3] = 60.0, -800.0
            with recorder.transition() as t:
                t.observe_batch((x, y))
                optimizer.zero_grad()
                loss = mse_loss(model(x), y)
                t.observe_loss(loss)
                loss.backward()
                t.clip_grad_norm_()
                optimizer.step()
    captured = {int(path.name[4:]) for path in captures_of(record.path)}
    assert captured == {50, 90, 130}
    changed: dict[str, Any] = {} if most else {"earlier": []}
    for row in captured:
        result = replayed(record.path, Built(build_regression(), loss_of_pair), row, **changed)
        assert result["verdicts"]["batch"] == ("supports" if most else "does not tell")
        assert not {"row 50", "row 90", "row 130"} & {batch["label"].split(" (")[0] for batch in result["batches"]}


def test_a_wrapped_model_is_replayed_by_the_one_within(record: Any) -> None:
    """As DistributedDataParallel over torch.compile names it: `module._orig_mod.0.weight`."""

    class Wrapper(nn.Module):
        def __init__(self, name: str, inner: nn.Module) -> None:
            super().__init__()
            self.add_module(name, inner)

        def forward(self, x: torch.Tensor) -> Any:
            [inner] = self.children()
            return inner(x)

    torch.manual_seed(4)
    model = Wrapper("module", Wrapper("_orig_mod", noisy()))
    optimizer = torch.optim.Adam(model.parameters())
    with record(model, optimizer, max_norm=1.0, capture=CapturePolicy(triggers=[])) as recorder:
        for row in range(6):
            x = torch.randn(16, 8)
            with recorder.transition() as t:
                t.observe_batch((x, x.sum(1, keepdim=True)))
                optimizer.zero_grad()
                loss = mse_loss(model(x), x.sum(1, keepdim=True))
                t.observe_loss(loss)
                loss.backward()
                t.clip_grad_norm_()
                if row in (2, 5):
                    recorder.capture("asked for")
                optimizer.step()
    result = replayed(record.path, Built(noisy(), loss_of_pair), 5)
    assert "to the last bit" in result["reproduced"]["outcome"]
    assert result["verdicts"]["gradient"] == "supports"
    assert result["updates_refused"] is None and not result["not_evaluated"]
    assert {update["label"].split()[0] for update in result["updates"]} >= {"own", "no", "earlier"}


def test_a_replay_is_written_beside_its_capture(record: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from recorder.__main__ import main

    noisy_run(record)
    (tmp_path / "entry_of_noisy.py").write_text(
        "import torch\nfrom torch import nn\n"
        "def build():\n"
        "    model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.Dropout(0.3), nn.Linear(32, 1))\n"
        "    return model, lambda m, b: nn.functional.mse_loss(m(b[0]), b[1])\n"
    )
    monkeypatch.chdir(tmp_path)
    arguments = ["replay", str(record.path), "--row", "30", "--entry", "entry_of_noisy:build"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert "to the last bit" in done.output
    stored = json.loads((record.path / "captures" / "row-000030" / "replay.json").read_text())
    assert stored["row"] == 30
    assert stored["entry"] == "entry_of_noisy:build"
    wrong = CliRunner().invoke(main, [*arguments[:3], "7", *arguments[4:]])
    assert wrong.exit_code == 2
    assert "captured rows: 30" in wrong.output


def test_a_step_too_long_for_its_quadratic_is_told_from_one_that_is_not(record: Any) -> None:
    """The second document's half square: with 2.5 from x = 2 the fourth step leads to 10.125; no batch is to blame."""

    def build() -> nn.Module:
        return nn.ParameterDict({"x": nn.Parameter(torch.tensor([2.0]))})

    def half_square(model: Any, _batch: Any) -> torch.Tensor:
        return model["x"].square().sum() / 2

    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=2.5)
    with record(model, optimizer, capture=CapturePolicy(triggers=[above("loss", 50.0)])) as recorder:
        for _ in range(6):
            with recorder.transition() as t:
                t.observe_batch("always the same")
                optimizer.zero_grad()
                loss = half_square(model, None)
                t.observe_loss(loss)
                t.record(x=model["x"])
                loss.backward()
                t.clip_grad_norm_()
                optimizer.step()
    assert record.column("user_x")[:5] == [2.0, -3.0, 4.5, -6.75, 10.125]
    result = replayed(record.path, Built(build(), half_square), 4)
    assert "to the last bit" in result["reproduced"]["outcome"]
    assert result["verdicts"]["batch"] == "refutes"
    step = next(u for u in result["updates"] if u["label"] == "own history, unclipped")
    assert step["update_ratio"] == 2.5
    assert step["loss_after"] > step["loss_before"]
