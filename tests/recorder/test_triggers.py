"""What the recorder does by itself while the run goes on: triggers, detail around them, limits."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
import torch

from recorder import CapturePolicy, NonFiniteError, SkipRateExceeded, Trigger, above, below, departs
from recorder.limits import skip_rate
from recorder.store import read_run
from recorder.trigger import skip_streak


def run(record: Any, losses: list[float], **settings: Any) -> None:
    """One step per loss: the gradient is proportional to it, and the loss may be non-finite."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    with record(model, optimizer, deep_every=0, **settings) as recorder:
        for index, scale in enumerate(losses):
            with recorder.transition(batch_id=index) as t:
                optimizer.zero_grad()
                loss = model(torch.ones(2, 4)).square().mean() * scale
                t.observe_loss(loss)
                t.record(scale=scale)
                loss.backward()
                t.clip_grad_norm_()
                optimizer.step()


def test_a_departing_loss_trips_once_and_the_rows_around_it_are_kept_in_detail(record: Any) -> None:
    run(record, [1.0] * 40 + [1e4] * 3 + [1.0] * 20, capacity=10)
    triggers = record.events("trigger")
    assert [(event["trigger"], event["row"]) for event in triggers] == [("loss_departs", 40), ("grad_norm_departs", 40)]
    layers = read_run(record.path).layers.to_pylist()
    # the ten rows held when it tripped, itself included, and eight deep ones after it
    assert sorted({layer["row"] for layer in layers}) == list(range(31, 49))
    before = [layer for layer in layers if layer["row"] == 35]
    assert len(before) == 4
    assert math.hypot(*(layer["grad_norm"] for layer in before)) == pytest.approx(record.column("grad_norm")[35])
    assert all(row["activation_absmax"] is not None for row in record.rows()[41:49])


def test_steady_noise_and_a_falling_loss_trip_nothing(record: Any) -> None:
    generator = torch.Generator().manual_seed(1)
    noise = torch.rand(200, generator=generator).tolist()
    run(record, [math.exp(-index / 50) * (0.7 + 0.6 * u) for index, u in enumerate(noise)])
    assert record.events("trigger") == []


def test_a_run_of_nan_is_told_once(record: Any) -> None:
    run(record, [1.0] * 5 + [math.nan] * 5 + [1.0])
    assert [event["row"] for event in record.events("trigger")] == [5]


def test_triggers_of_the_user_replace_the_default_ones(record: Any) -> None:
    def every_third(row: Any) -> str | None:
        return "third" if row["row"] % 3 == 2 else None

    run(record, [1.0, math.nan, 1.0, 1.0, 1.0, 1.0], triggers=[Trigger("third", every_third), below("loss", -1.0)])
    assert [(event["trigger"], event["row"]) for event in record.events("trigger")] == [("third", 2), ("third", 5)]


@pytest.mark.filterwarnings("ignore:the flight recorder met a fault")
def test_a_trigger_that_raises_harms_nothing(record: Any) -> None:
    run(record, [1.0] * 3, triggers=[Trigger("broken", lambda row: row["no such column"])])
    assert len(record.rows()) == 3
    assert "no such column" in record.events("recorder_fault")[0]["text"]


def test_a_streak_of_skips() -> None:
    trigger = skip_streak(3)
    rows = [{"attempted": True, "executed": executed} for executed in (False, False, True, False, False, False)]
    assert [trigger.reason(row) is not None for row in rows] == [False] * 5 + [True]


def test_departure_needs_a_history() -> None:
    trigger = departs("loss")
    assert [trigger.reason({"loss": value}) for value in (1.0, 100.0, 1.0)] == [None] * 3


def test_a_jump_out_of_a_falling_loss_departs() -> None:
    """Within its last 64 rows the loss fell twentyfold: the MADs of that are large, and the jump is larger."""
    trigger = departs("loss")
    falling = [2.0 * 0.95**row for row in range(64)]
    assert [trigger.reason({"loss": value}) for value in falling] == [None] * 64
    assert trigger.reason({"loss": 1.9}) is None
    reason = trigger.reason({"loss": 40.0})
    assert reason is not None
    assert "times the largest of the last 64 rows" in reason


def test_on_nonfinite_raise_ends_the_run_after_the_row_is_written(record: Any) -> None:
    with pytest.raises(NonFiniteError, match=r"row 2, step 2, batch 2: loss nan"):
        run(record, [1.0, 1.0, math.nan, 1.0], on_nonfinite="raise")
    rows = record.rows()
    assert len(rows) == 3
    assert math.isnan(rows[2]["loss"])
    assert [event["text"].split(":")[0] for event in record.events("exception")] == ["NonFiniteError"]
    assert read_run(record.path).manifest["closed"] is True


def test_a_skip_rate_over_the_limit_ends_the_run_with_everything_written(record: Any) -> None:
    """Every tenth attempt overflows: 10 % of them, over the limit of 5 %, judged once 1,000 attempts are in."""
    model = torch.nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    scaler = torch.amp.GradScaler("cpu", growth_interval=9)
    recorder = record(model, optimizer, scaler=scaler, deep_every=0, fail_on_skip_rate=0.05, fail_after=100)

    def loop() -> None:
        for index in range(2000):
            with recorder.transition():
                optimizer.zero_grad()
                scaler.scale(model(torch.ones(1, 1)).sum()).backward()
                if index % 10 == 9:
                    model.weight.grad.fill_(float("inf"))
                scaler.step(optimizer)
                scaler.update()

    with pytest.raises(SkipRateExceeded, match=r"10\.0% of the last 1,000 attempts"):
        loop()
    assert len(record.rows()) == 1099
    recorder.close()


def test_the_calibration_of_a_scaler_does_not_end_a_run() -> None:
    limit = skip_rate(0.05, after=100)
    rows = [{"attempted": True, "executed": index >= 20, "row": index, "step": index} for index in range(3000)]
    assert all(limit(row) is None for row in rows)


@pytest.mark.parametrize(
    "settings", [{"on_nonfinite": "ignore"}, {"fail_on_skip_rate": 1.5}, {"fail_on_skip_rate": 0.1, "fail_after": 0}]
)
def test_limits_that_make_no_sense_are_refused(record: Any, settings: dict[str, Any]) -> None:
    model = torch.nn.Linear(1, 1)
    with pytest.raises(ValueError, match=r"on_nonfinite|fail_on_skip_rate"):
        record(model, torch.optim.SGD(model.parameters(), lr=0.1), **settings)


@pytest.mark.parametrize("column", ["los", "update_ration", "x"])
def test_a_trigger_on_no_column_is_refused_and_says_which_there_are(record: Any, column: str) -> None:
    with pytest.raises(ValueError, match=r"loss|update_ratio") as refused:
        run(record, [1.0], triggers=[above(column, 1.0)])
    assert column in str(refused.value)
    assert not record.path.exists()
    with pytest.raises(ValueError, match="which is no column"):
        CapturePolicy(triggers=[below(column, 1.0)])


def test_a_capture_by_what_only_the_step_shows_is_refused() -> None:
    with pytest.raises(ValueError, match="FlightRecorder"):
        CapturePolicy(triggers=[above("update_ratio", 1.0)])


def test_a_trigger_on_the_loops_own_field_trips_and_captures(record: Any) -> None:
    run(
        record,
        [1.0, 9.0, 1.0],
        triggers=[above("user_scale", 5.0)],
        capture=CapturePolicy(triggers=[above("user_scale", 5.0)]),
    )
    assert [event["row"] for event in record.events("trigger")] == [1]
    assert [event["row"] for event in record.events("capture")] == [1]


def test_a_field_with_the_name_of_a_column_is_warned_of_once(record: Any) -> None:
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with warnings.catch_warnings(record=True) as warned, record(model, optimizer) as recorder:
        warnings.simplefilter("always")
        for _ in range(3):
            with recorder.transition() as t:
                t.record(loss=1.0, lr=0.5, mine=2.0)
    assert ["observe_loss()" in str(each.message) for each in warned] == [True]
    noted = [event["text"] for event in record.events("note")]
    assert [("user_loss" in text, "user_lr" in text) for text in noted] == [(True, False), (False, True)]
    assert record.column("user_loss") == [1.0] * 3
