"""How cells are written, and where rows and values stand."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spikeview.analysis.baseline import Baseline
from spikeview.rules.diagnosis import View
from spikeview.run import Run
from spikeview.ui import visible
from spikeview.ui.facts import facts
from spikeview.ui.neighbours import clocks, shortened
from spikeview.ui.plot.scale import Across, Steps, Up, fitted, round_values, step_ticks, value_label, value_ticks
from spikeview.ui.values import Cell, cell, step_label
from tests.ui import made_runs


def test_the_five_kinds_of_cell_are_told_apart() -> None:
    run = made_runs.run_of(
        {
            "loss": pa.array([1.0, math.nan, math.inf, -math.inf, None]),
            "executed": pa.array([True, True, True, False, True]),
            "attempted": [True] * 5,
            "update_ratio": pa.array([0.1, 0.1, None, None, 0.1]),
        }
    )
    view = made_runs.view_of(run)
    texts = [cell(view, "loss", position, narrow=True).text for position in range(5)]
    assert texts == ["1", "NaN ◆", "Inf ▲", "-Inf ▲", "ø"]
    narrow = [cell(view, "update_ratio", position, narrow=True).text for position in (2, 3)]
    assert narrow == ["ø", "—"]
    wide = [cell(view, "update_ratio", position).text for position in (2, 3)]
    assert wide == ["not recorded", "not applicable"]
    assert cell(view, "grad_norm", 0).text == "not recorded"


@pytest.mark.parametrize(
    ("column", "bad_side"), [("loss", 1), ("grad_norm", 1), ("update_ratio", 1), ("update_cosine", -1)]
)
@pytest.mark.parametrize(("mads", "colour"), [(0.5, "text"), (3.5, "warn"), (5.5, "bad"), (1e6, "bad")])
def test_only_the_bad_side_of_a_signal_is_coloured(column: str, bad_side: int, mads: float, colour: str) -> None:
    run = made_runs.run_of({column: [0.1] * 4, "executed": [True] * 4})
    away = np.array([0.0, bad_side * mads, -bad_side * mads, np.nan])
    flat = np.full(4, 0.1)
    view = View("optimizer", run, {column: Baseline(flat, flat - 0.01, flat + 0.01, away)})
    assert [cell(view, column, position).role for position in range(4)] == ["text", colour, "text", "text"]


def test_a_value_without_a_baseline_says_nothing_of_one() -> None:
    view = made_runs.view_of(made_runs.run_of({"loss": [1.0, 1.1], "lr": [0.1, 0.1]}))
    assert cell(view, "lr", 0) == Cell("0.1000")
    assert cell(view, "loss", 0).center == "1.050"
    assert cell(view, "loss", 0).band == "1.050 within 1 to 1.100"


def test_long_clocks_show_the_digits_in_which_they_differ() -> None:
    columns = {"attempted_n": [8220, 1_048_576], "executed_n": [8219, 1_048_573], "scheduled_n": [8220, 1_048_576]}
    view = made_runs.view_of(made_runs.run_of({**columns, "executed": [True, True], "attempted": [True, True]}))
    assert clocks(view, 0).text == "8220/8219/8220"
    assert clocks(view, 1).text == "…76/73/76"
    assert clocks(view, 1, narrow=False).text == "1048576/1048573/1048576"


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        (["99998", "99995", "–"], ["99998", "99995", "–"]),
        (["10000001", "9999998", "10000001"], ["…001", "998", "001"]),
        (["12345600", "12345597", "–"], ["…600", "597", "–"]),
        (["2000000", "1000000", "2000000"], ["…2000000", "1000000", "2000000"]),
    ],
)
def test_long_clocks_are_told_apart_where_they_carry(counts: list[str], told: list[str]) -> None:
    assert shortened(counts) == told


def test_a_micro_step_is_told_beside_its_step() -> None:
    run = made_runs.run_of({"loss": [1.0, 1.0], "step": [1200, 1200], "micro_step": np.array([0, 1], dtype=np.int32)})
    assert [step_label(run, position) for position in range(2)] == ["1,200", "1,200.1"]


def test_facts_say_what_the_manifest_says_and_survive_one_that_says_nothing() -> None:
    run = made_runs.run_of({"loss": [1.0, 2.0], "segment": np.array([0, 1], dtype=np.int32), "step": [5, 3]})
    assert facts(run) == [("rows", "2"), ("segments", "2 (resume 3)"), ("device", "cuda")]
    odd = Run("odd", run.table, {"optimizers": "adam", "scaler": None, "model": 3}, notes=("a tail was cut",))
    assert facts(odd)[-1] == ("note", "a tail was cut")


@given(low=st.floats(-1e6, 1e6), span=st.floats(1e-6, 1e6), room=st.integers(1, 20))
def test_round_values_fit_the_room_and_the_range(low: float, span: float, room: int) -> None:
    found = round_values(low, low + span, room)
    assert len(found) <= room + 1
    assert all(low - span * 1e-3 <= value <= low + span * 1.001 for value in found)


@given(low=st.floats(1e-12, 1e12), factor=st.floats(1, 1e20), height=st.integers(40, 400))
def test_a_log_axis_has_labels_and_keeps_its_values_inside(low: float, factor: float, height: int) -> None:
    scale = fitted(low, low * factor, 0.0, True, 0, height)
    pixels = scale.pixels(np.array([low, low * factor]))
    assert (pixels >= -1e-6).all()
    assert (pixels <= height + 1e-6).all()
    ticks = value_ticks(scale, 38)
    assert len(ticks) >= 1
    assert (np.diff(scale.pixels(np.array(ticks))) < -8).all() or len(ticks) == 2, "digits of 8 pixels are apart"


def test_an_axis_without_values_or_with_one_value_can_be_drawn() -> None:
    for low, high in ((math.inf, -math.inf), (0.0, 0.0), (3.0, 3.0), (-1e308, 1e308)):
        scale = fitted(low, high, 0.0, False, 0, 100)
        assert scale.high > scale.low
        assert len(value_ticks(scale, 38)) >= 1


@pytest.mark.parametrize(
    ("ticks", "log", "signed", "labels"),
    [
        ([2.0, 2.5, 3.0], False, False, ["2.0", "2.5", "3.0"]),
        ([0.01, 1.0, 100.0, 1e4], True, False, ["0.01", "1", "100", "1e4"]),
        ([-1.0, 0.0, 1.0], False, True, ["-1", "0", "+1"]),
        ([2e6, 4e6], False, False, ["2e6", "4e6"]),
    ],
)
def test_labels_of_values(ticks: list[float], log: bool, signed: bool, labels: list[str]) -> None:
    assert [value_label(value, ticks, log, signed) for value in ticks] == labels


def test_steps_are_labelled_at_round_numbers_and_after_a_resume_at_their_rows() -> None:
    rising = Steps(np.arange(500, 2500), True)
    ticks = step_ticks(rising, Across(0, 1000, 0, 500), 100)
    assert [step for _, step in ticks] == [600, 800, 1000, 1200, 1400]
    assert all(rising.values[position] == step for position, step in ticks)
    back = Steps(np.concatenate([np.arange(100), np.arange(50, 150)]), False)
    ticks = step_ticks(back, Across(0, 199, 0, 500), 100)
    assert all(back.values[position] == step for position, step in ticks)
    assert len(ticks) >= 3


@given(rows=st.integers(1, 10_000), first=st.floats(-2e4, 2e4), extent=st.floats(-10, 4e4))
def test_what_is_in_sight_stays_within_the_run(rows: int, first: float, extent: float) -> None:
    low, high = visible.whole(rows)
    begin, end = visible.within(first, first + extent, rows)
    assert low - 1e-6 <= begin < end <= high + 1e-6


@given(rows=st.integers(10, 10_000), position=st.integers(0, 9_999), first=st.integers(0, 9_999))
def test_the_range_moves_to_contain_a_position(rows: int, position: int, first: int) -> None:
    position = min(position, rows - 1)
    begin, end = visible.containing(visible.within(first, first + 50, rows), position, rows)
    assert begin <= position <= end


def test_zoom_keeps_the_centre() -> None:
    first, last = visible.zoomed((100.0, 300.0), 150.0, 0.5)
    assert (first, last) == (125.0, 225.0)


def test_pixels_stay_within_reach_of_qt() -> None:
    pixels = Up(0, 1, 0, 100).pixels(np.array([1e300, -1e300]))
    assert np.abs(pixels).max() < 1e5
