"""The panels beyond the first four: what they draw, what they say of a run that lacks it, and how they are arranged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage, QPainter, QPen
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from spikeview.analysis.envelope import edges
from spikeview.analysis.pyramid import build
from spikeview.cells import Kind
from spikeview.ranks import Ranks
from spikeview.rules.diagnosis import Diagnosis
from spikeview.run import Run
from spikeview.ui import layout
from spikeview.ui.layout import Layout
from spikeview.ui.panels import PANELS
from spikeview.ui.panels.clip_frequency import WINDOW, clipped_share
from spikeview.ui.panels.panel import Cells
from spikeview.ui.panels.step_time import milliseconds
from spikeview.ui.panels.validation import validation
from spikeview.ui.plot.curve import columns_of, draw_curve
from spikeview.ui.plot.heat import heat
from spikeview.ui.plot.heat_widget import HeatWidget
from spikeview.ui.plot.scale import Across, Up
from spikeview.ui.ranked import RankedRun
from spikeview.ui.theme import DARK
from spikeview.ui.window import Window
from tests.ui import made_runs
from tests.ui.conftest import Ending

Show = Callable[[Diagnosis], Window]
ROWS = 400


def everything() -> Diagnosis:
    """A run that has what every panel asks for."""
    steps, random = np.arange(ROWS), np.random.default_rng(2)
    run = made_runs.drawn_run(ROWS)
    table = run.table
    for name, values in (
        ("time_ns", 10**18 + steps * 50_000_000),
        ("update_norm", 0.02 + random.random(ROWS) * 0.001),
        ("param_norm", pa.array(np.full(ROWS, 9.0), mask=steps % 50 != 0)),
    ):
        table = table.append_column(name, pa.array(values))
    deep = np.repeat(steps[::20], 3)
    layers = pa.table(
        {
            "row": deep,
            "optimizer": pa.array(["optimizer"] * len(deep)),
            "name": pa.array(["embed", "body", "lm_head"] * (len(deep) // 3)),
            "grad_norm": np.tile([1.0, 2.0, 4.0], len(deep) // 3),
            "update_ratio": np.tile([1e-3, 2e-3, 4e-3], len(deep) // 3),
        }
    )
    events = [{"kind": "validation", "row": row, "loss": 3.0 - row / 400} for row in range(49, ROWS, 50)]
    one = replace(run, table=table, layers=layers, events=events, _cache={}, _views={}, _before={})
    other = replace(one, rank=1, _cache={}, _views={}, _before={})
    known = {name: getattr(one, name) for name in Run.__dataclass_fields__}
    ranked = RankedRun(**known, ranks=Ranks("runs/made", {0: one, 1: other}))
    return Diagnosis(ranked, (made_runs.view_of(ranked),), (), ())


@pytest.mark.parametrize("panel", [panel.id for panel in PANELS])
def test_every_panel_draws_what_a_complete_run_has(show: Show, panel: str) -> None:
    window = show(everything())
    window.plots.arrange(Layout(shown=frozenset({panel})))
    widget = window.plots.panels[panel]
    assert widget.reason == ""
    image, area = widget.grab().toImage(), widget.plot_area.toRect()
    colours = {
        image.pixelColor(x, y).name()
        for x in range(area.left(), area.right(), 2)
        for y in range(area.top(), area.bottom(), 2)
    }
    assert len(colours - {DARK["panel"].name(), DARK["grid"].name(), DARK["text"].name()}) >= 1
    assert "".join(span.text for span in widget.head(200)).strip()


def test_what_a_run_lacks_is_told_in_one_line_and_greyed(show: Show) -> None:
    window = show(made_runs.healthy())
    window.plots.arrange(Layout(shown=frozenset(panel.id for panel in PANELS)))
    reasons = {panel.id: window.plots.panels[panel.id].reason for panel in PANELS}
    assert reasons["loss"] == "" and reasons["grad_norm"] == ""
    assert reasons["loss_scale"] == "not recorded: loss_scale"
    assert reasons["validation"] == "not recorded: validation events"
    assert reasons["layer_shares"] == "not recorded: grad_norm of parameters"
    assert reasons["rank_spread"] == "only one rank was recorded"
    for panel_id, reason in reasons.items():
        action = window.menus.panels[panel_id]
        assert action.isEnabled() == (not reason)
        if reason:
            assert window.plots.panels[panel_id].height() < 40
            assert action.toolTip() == reason


def test_the_share_of_clipped_rows_is_that_of_the_rows_up_to_each() -> None:
    random = np.random.default_rng(0)
    coefficient = np.where(random.random(500) < 0.3, 0.5, 1.0)
    known = random.random(500) < 0.8
    run = made_runs.run_of({"clip_coef": pa.array(coefficient, mask=~known)})
    values, kinds = clipped_share(run)
    for row in (0, 5, 99, 100, 250, 499):
        rows = slice(max(0, row - WINDOW + 1), row + 1)
        held = coefficient[rows][known[rows]]
        assert (kinds[row] == Kind.FINITE) == (len(held) > 0)
        if len(held):
            assert values[row] == pytest.approx((held < 1).mean())


def test_step_time_knows_no_time_across_a_resume() -> None:
    run = made_runs.run_of(
        {"time_ns": np.array([0, 2, 5, 900, 904]) * 1_000_000, "segment": np.array([0, 0, 0, 1, 1], dtype=np.int32)}
    )
    took, kinds = milliseconds(run)
    assert took[[0, 1, 3]].tolist() == [2.0, 3.0, 4.0]
    assert kinds[[2, 4]].tolist() == [Kind.NOT_APPLICABLE] * 2


def test_validation_stands_at_the_row_after_which_it_was_taken() -> None:
    events = [
        {"kind": "validation", "row": 14, "loss": 1.5},
        {"kind": "checkpoint", "row": 15},
        {"kind": "validation", "row": 19, "loss": float("inf")},
    ]
    run = replace(made_runs.run_of({"row": np.arange(10, 20), "loss": np.ones(10)}), events=events)
    values, kinds = validation(run)
    assert values[4] == 1.5
    assert [kinds[at] for at in (3, 4, 9)] == [Kind.NOT_APPLICABLE, Kind.FINITE, Kind.POS_INF]


@given(
    seed=st.integers(0, 999),
    names=st.integers(1, 40),
    deep=st.integers(1, 60),
    first=st.floats(-50, 400),
    extent=st.floats(5, 600),
    height=st.integers(5, 60),
)
@settings(max_examples=60, deadline=None)
def test_no_cell_of_a_heatmap_is_hidden(
    seed: int, names: int, deep: int, first: float, extent: float, height: int
) -> None:
    random = np.random.default_rng(seed)
    positions = np.sort(random.choice(400, size=deep, replace=False))
    cells = Cells(tuple(map(str, range(names))), positions, random.random((names, deep)))
    across = Across(first, first + extent, 0, 120)
    found = heat(cells, across, height)
    inside = (positions >= np.ceil(across.first)) & (positions < across.last - 1)
    if inside.any():
        largest = cells.values[:, inside].max()
        assert np.nanmax(found) >= largest
    assert np.isin(found[~np.isnan(found)], cells.values).all()


@pytest.mark.parametrize("every", [1, 3, 20])
@pytest.mark.parametrize("first", [-0.5, 0.0, 0.7])
def test_a_cell_stands_around_its_row_and_reaches_to_the_next(every: int, first: float) -> None:
    """Where the head says which cell the mouse is on, that one is painted: no gaps, and nothing beside its row."""
    positions = np.arange(0, 60, every)
    across = Across(first, 50.5, 0, 600)
    found = heat(Cells(("a",), positions, positions[None] + 1.0), across, 1)[0]
    for pixel in range(1, 600):
        rows = {int(np.floor(across.position(edge) + 0.5)) for edge in (pixel, pixel + 1)}
        if len(rows) == 1:
            row = rows.pop()
            assert found[pixel] == (row // every * every + 1 if row >= 0 else np.nan)


def test_the_first_cell_of_which_a_part_is_in_sight_is_not_hidden_by_the_next() -> None:
    found = heat(Cells(("a",), np.array([1, 2]), np.array([[5.0, 1.0]])), Across(0.6, 240.6, 0, 120), 1)[0]
    assert found[0] == 5.0


def test_the_last_cell_reaches_no_farther_than_the_others() -> None:
    across = Across(-0.5, 19.5, 0, 200)
    found = heat(Cells(("a",), np.array([0, 4, 8]), np.ones((1, 3))), across, 1)[0]
    assert np.flatnonzero(~np.isnan(found)).tolist() == list(range(120))


def test_a_click_on_a_layer_shows_its_curve_and_another_all_of_them(qtbot: QtBot, show: Show) -> None:
    window = show(everything())
    window.plots.arrange(Layout(shown=frozenset({"layer_shares"})))
    widget = window.plots.panels["layer_shares"]
    assert isinstance(widget, HeatWidget)
    area = widget.plot_area
    at = QPoint(round(area.center().x()), round(area.top() + area.height() * 5 / 6))
    qtbot.mouseMove(widget, at)
    told = "".join(span.text for span in widget.head(window.session.hovered or 0))
    assert "lm_head" in told and "0.762" in told
    qtbot.mouseClick(widget, Qt.MouseButton.LeftButton, pos=at)
    assert widget.chosen == "lm_head"
    qtbot.mouseClick(widget, Qt.MouseButton.LeftButton, pos=at)
    assert widget.chosen is None


def test_the_chain_names_the_layers_that_carried_the_norm(show: Show) -> None:
    window = show(everything())
    chain = window.inspector._chain._values["layers"]
    window.session.inspect_row(41)
    assert chain.toolTip() == "lm_head 76 %, body 19 %, embed 5 %"
    window.session.inspect_row(42)
    assert chain.toolTip() == "not recorded"


def test_the_ranks_are_told_apart(show: Show) -> None:
    window = show(everything())
    widget = window.plots.panels["rank_spread"]
    assert "highest rank" in "".join(span.text for span in widget.head(3))
    assert window.header._ranks.isVisible()
    assert window.header._ranks.currentText() == "rank 0 of 2"


@given(rows=st.integers(30, 4000), seed=st.integers(0, 99), start=st.floats(0, 0.7), share=st.floats(0.2, 1.0))
@settings(max_examples=40, deadline=None)
def test_every_column_of_pixels_is_painted_from_its_lowest_to_its_highest_row(
    rows: int, seed: int, start: float, share: float
) -> None:
    values = np.random.default_rng(seed).normal(size=rows)
    across = Across(start * rows, (start + share) * rows, 10, 60)
    if across.rows_per_pixel <= 1:
        return
    up = Up(-5.0, 5.0, 0.0, 200.0)
    pyramid = build(values, np.zeros(rows, dtype=np.uint8))
    image = QImage(80, 200, QImage.Format.Format_RGB32)
    image.fill(0)
    with QPainter(image) as painter:
        draw_curve(painter, pyramid, columns_of(pyramid, across), across, up, QPen(Qt.GlobalColor.white, 1))
    cuts = edges(across.first, across.last, 60, rows).at
    for column in range(60):
        held = values[cuts[column] : cuts[column + 1]]
        for extreme in (held.min(), held.max()) if len(held) else ():
            y = up.pixel(float(extreme))
            lit = [
                image.pixel(10 + column, at) & 0xFFFFFF for at in range(max(0, round(y) - 2), min(200, round(y) + 2))
            ]
            assert any(lit)


def visible(window: Window) -> list[str]:
    """The panels on the screen from top to bottom."""
    shown: list[tuple[int, str]] = [
        (widget.mapTo(window.plots, QPoint(0, 0)).y(), panel_id)
        for panel_id, widget in window.plots.panels.items()
        if QWidget.isVisible(widget)
    ]
    return [panel_id for _, panel_id in sorted(shown)]


def test_panels_are_shown_moved_and_hidden_by_keys_and_come_back_in_the_next_window(
    qtbot: QtBot, show: Show, ending: Ending
) -> None:
    window = show(everything())
    window.plots.layout_changed.connect(window.remember_layout)
    assert visible(window) == ["loss", "grad_norm", "clocks", "alignment"]
    qtbot.keyClick(window, Qt.Key.Key_5)
    assert visible(window) == ["loss", "grad_norm", "clocks", "alignment", "update_ratio"]
    window.plots.panels["loss"].setFocus()
    qtbot.keyClick(window, Qt.Key.Key_Down, Qt.KeyboardModifier.ControlModifier)
    window.plots.panels["clocks"].setFocus()
    qtbot.keyClick(window, Qt.Key.Key_H, Qt.KeyboardModifier.ControlModifier)
    assert visible(window) == ["grad_norm", "loss", "alignment", "update_ratio"]
    again = ending(Window(DARK))
    again.plots.arrange(layout.remembered())
    again.show()
    again.activateWindow()
    qtbot.waitUntil(again.isActiveWindow)
    again.session.show(window.session.shown)
    assert visible(again) == ["grad_norm", "loss", "alignment", "update_ratio"]
    assert not again.menus.panels["clocks"].isChecked()
    qtbot.keyClick(again, Qt.Key.Key_0, Qt.KeyboardModifier.ControlModifier)
    assert visible(again) == ["loss", "grad_norm", "clocks", "alignment"]


def test_heights_that_were_dragged_are_remembered(show: Show) -> None:
    window = show(everything())
    handle = window.plots._splitter
    handle.setSizes([400, *handle.sizes()[1:]])
    window.plots._keep_heights()
    before = window.plots.arrangement
    assert before.heights["loss"] > before.heights["grad_norm"]
    layout.remember(before)
    assert layout.remembered() == before


def test_a_series_nobody_wanted_is_built_when_its_panel_is_shown(
    qtbot: QtBot, open_sample: Callable[[str], Window]
) -> None:
    window = open_sample("update_against_gradient")
    assert "step_time" not in window.session.shown.plots[0]  # type: ignore[union-attr]
    with qtbot.waitSignal(window.session.drawn):
        window.plots.show_panel("step_time", True)
    assert window.session.series.of("step_time") is not None
