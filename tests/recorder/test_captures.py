"""What a capture holds, when it is taken, and what it says it left out."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

from recorder import CapturePolicy, above
from recorder.capture import captures_of, read_capture
from recorder.store import StoreError


def train(record: Any, losses: list[float], *, batch: Any = None, decline: bool = False, **policy: Any) -> nn.Module:
    """One row a loss, reached by scaling the target; a loop that declines tests its loss before the backward."""
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with record(model, optimizer, max_norm=1.0, capture=CapturePolicy(**policy)) as recorder:
        for index, factor in enumerate(losses):
            x = torch.randn(8, 4)
            with recorder.transition(batch_id=f"batch {index}") as t:
                t.observe_batch({"x": x, "factor": factor} if batch is None else batch)
                optimizer.zero_grad()
                loss = mse_loss(model(x), torch.zeros(8, 1)) * factor
                t.observe_loss(loss)
                if decline and not math.isfinite(loss.detach()):
                    continue
                loss.backward()
                t.clip_grad_norm_()
                optimizer.step()
    return model


def rows_captured(record: Any) -> list[int]:
    return [read_capture(path).row for path in captures_of(record.path)]


def test_a_capture_is_the_state_before_the_step_of_the_row_that_tripped(record: Any) -> None:
    train(record, [1.0] * 20 + [1e6] + [1.0] * 3)
    (capture,) = map(read_capture, captures_of(record.path))
    assert capture.row == 20
    assert capture.left_out == ()
    assert capture.facts["batch_id"] == "batch 20"
    assert capture.facts["grad_norm"] == record.column("grad_norm")[20]
    assert capture.facts["loss"] == record.column("loss")[20]
    assert "loss" in capture.facts["why"]
    state = capture.contents["optimizers"]["optimizer"]["state"][0]
    assert float(state["step"]) == 20
    assert capture.contents["buffers"]["1.num_batches_tracked"] == 20
    theta = sum(float(p.double().square().sum()) for p in capture.contents["parameters"].values()) ** 0.5
    assert theta == pytest.approx(record.column("param_norm")[20], rel=1e-6)
    assert capture.contents["batch"]["factor"] == 1e6
    assert [e["row"] for e in capture.contents["earlier"]] == [16, 17, 18, 19]
    (event,) = record.events("capture")
    assert event["path"] == "captures/row-000020"


def test_a_row_that_the_loop_declines_is_captured_at_its_end(record: Any) -> None:
    train(record, [1.0] * 5 + [math.nan, 1.0], decline=True)
    assert rows_captured(record) == [5]
    assert math.isnan(read_capture(captures_of(record.path)[0]).facts["loss"])
    assert record.column("skip_reason")[5] == "nonfinite_loss"


def test_rows_that_trip_one_after_the_other_are_one_occasion(record: Any) -> None:
    train(record, [1.0] * 3 + [math.inf] * 4 + [1.0], decline=True)
    assert rows_captured(record) == [3]


def test_a_policy_has_its_own_triggers_and_a_most(record: Any) -> None:
    trips = [1.0, 100.0, 1.0, 100.0, 1.0, 100.0, 1.0]
    train(record, trips, triggers=[above("loss", 8.0)], most=2)
    assert rows_captured(record) == [1, 3]
    refused = [event for event in record.events("capture") if "left_out" in event]
    assert [event["row"] for event in refused] == [5]
    assert "2 captures" in refused[0]["left_out"]


@pytest.mark.parametrize(
    ("policy", "gone", "said"),
    [
        ({"max_parameters": 10}, {"parameters", "optimizers"}, "over 10"),
        ({"optimizer_state": False}, {"optimizers"}, "policy leaves them out"),
        ({"max_bytes": 8_000}, {"optimizers", "earlier"}, "over the 8,000 bytes"),
    ],
    ids=["parameters", "optimizer state", "bytes"],
)
def test_what_a_policy_leaves_out_is_said(record: Any, policy: Any, gone: set[str], said: str) -> None:
    train(record, [1.0, 1.0, math.nan], **policy)
    (capture,) = map(read_capture, captures_of(record.path))
    assert gone.isdisjoint(capture.contents)
    assert "batch" in capture.contents
    assert any(said in line for line in capture.left_out)


def test_of_the_batches_before_the_ids_alone_are_kept_where_a_policy_says_so(record: Any) -> None:
    train(record, [1.0, 1.0, math.nan], contents=False)
    (capture,) = map(read_capture, captures_of(record.path))
    assert "batch" in capture.contents
    assert [(each["row"], "batch" in each) for each in capture.contents["earlier"]] == [(0, False), (1, False)]


def test_a_batch_of_any_make_comes_back(record: Any) -> None:
    batch = {
        "ids": torch.arange(6).view(2, 3),
        "mask": torch.tensor([True, False]),
        "half": torch.ones(2, dtype=torch.bfloat16),
        "nested": [(np.float32(1.5), np.arange(3)), None, "text", {1: -math.inf}],
        "odd": object(),
    }
    train(record, [1.0, math.nan], batch=batch)
    (capture,) = map(read_capture, captures_of(record.path))
    back = capture.contents["batch"]
    assert torch.equal(back["ids"], batch["ids"])
    assert back["half"].dtype is torch.bfloat16
    assert back["nested"][0][0] == 1.5
    assert back["nested"][0][1].tolist() == [0, 1, 2]
    assert back["nested"][1:] == [None, "text", {1: -math.inf}]
    assert back["odd"] is None
    assert any("batch/odd (object)" in line for line in capture.left_out)


def test_a_batch_that_the_loop_changes_afterwards_is_captured_as_it_was(record: Any) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(model, optimizer, capture=CapturePolicy()) as recorder, recorder.transition() as t:
        x = torch.ones(4, 2)
        t.observe_batch(x)
        loss = (model(x) / 0).sum()
        t.observe_loss(loss)
        x.zero_()
    (capture,) = map(read_capture, captures_of(record.path))
    assert torch.equal(capture.contents["batch"], torch.ones(4, 2))


def test_parameters_are_the_same_with_and_without_captures(record: Any) -> None:
    states = []
    for captured in (False, True):
        torch.manual_seed(4)
        model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 1))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        settings = {"capture": CapturePolicy(triggers=[above("loss", 0.0)])} if captured else {}
        with record(model, optimizer, resume=captured, **settings) as recorder:
            for _ in range(20):
                x = torch.randn(8, 4)
                with recorder.transition() as t:
                    t.observe_batch(x)
                    optimizer.zero_grad()
                    loss = model(x).square().mean()
                    t.observe_loss(loss)
                    loss.backward()
                    optimizer.step()
        states.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert torch.equal(*states)


def two_rows_without_room_for_captures(record: Any) -> None:
    model = nn.Linear(2, 1)
    with record(model, torch.optim.SGD(model.parameters(), lr=0.1), capture=CapturePolicy()) as recorder:
        (record.path / "captures").write_text("in the way")
        for _ in range(2):
            with recorder.transition() as t:
                t.observe_loss((model(torch.ones(1, 2)) / 0).sum())


def test_a_capture_that_cannot_be_written_harms_nothing(record: Any) -> None:
    with pytest.warns(RuntimeWarning, match="flight recorder"):
        two_rows_without_room_for_captures(record)
    assert len(record.rows()) == 2
    assert record.events("recorder_fault")


def test_asking_for_a_capture_without_a_policy_is_noted_once(record: Any) -> None:
    model = nn.Linear(2, 1)
    with record(model, torch.optim.SGD(model.parameters(), lr=0.1)) as recorder:
        for _ in range(2):
            with recorder.transition():
                recorder.capture("why")
    assert len(record.events("note")) == 1
    assert not (record.path / "captures").exists()


@pytest.mark.parametrize("setting", [{"most": 0}, {"batches": 0}, {"max_bytes": 1.5}])
def test_a_policy_that_cannot_be_meant_is_refused(setting: Any) -> None:
    with pytest.raises(ValueError, match="CapturePolicy"):
        CapturePolicy(**setting)


@pytest.mark.parametrize("damage", ["no json", "a tensor of no name", "newer", "cut tensors", "a link out", "gone"])
def test_a_damaged_capture_is_refused_in_one_line(record: Any, tmp_path: Path, damage: str) -> None:
    train(record, [1.0, math.nan])
    (path,) = captures_of(record.path)
    facts, tensors = path / "capture.json", path / "tensors.safetensors"
    if damage == "no json":
        facts.write_text("{")
    elif damage == "a tensor of no name":
        facts.write_text(facts.read_text().replace('"$tensor": "/batch/x"', '"$tensor": "/batch/y"'))
    elif damage == "newer":
        facts.write_text(json.dumps({**json.loads(facts.read_text()), "version": 99}))
    elif damage == "cut tensors":
        tensors.write_bytes(tensors.read_bytes()[:-10])
    elif damage == "a link out":
        elsewhere = tmp_path / "elsewhere"
        tensors.rename(elsewhere)
        tensors.symlink_to(elsewhere)
    else:
        tensors.unlink()
    with pytest.raises(StoreError) as error:
        read_capture(path)
    assert "\n" not in str(error.value)
