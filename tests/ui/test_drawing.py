"""What is on the screen: no spike hidden, every bad row marked, nothing cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QEnterEvent, QFontInfo, QImage, QPainter
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QTableView, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from spikeview.analysis.incident import Incident, Observation, SignalExtent
from spikeview.rules.diagnosis import Diagnosed, Diagnosis
from spikeview.ui import incidents
from spikeview.ui.column import Column
from spikeview.ui.fonts import scaled
from spikeview.ui.foot import Foot
from spikeview.ui.incidents import card
from spikeview.ui.opening import opened
from spikeview.ui.panels.plotted import Curves
from spikeview.ui.plot.marks import (
    INF_MARK,
    LANE,
    MARKS,
    NAN_MARK,
    NEG_INF_MARK,
    SKIPPED_MARK,
    ZERO_MARK,
    Mark,
    draw_mark,
    lanes,
)
from spikeview.ui.plot.panel_head import fitting
from spikeview.ui.spans import Span, width
from spikeview.ui.theme import DARK, LIGHT
from spikeview.ui.values import Cell
from spikeview.ui.window import Window
from tests.ui import made_runs

Show = Callable[[Diagnosis], Window]
SAMPLES = ["amp_clock_drift", "bf16_clipped", "bf16_explosion", "fp16_overflow", "healthy", "update_against_gradient"]


def diagnosis_of(**columns: object) -> Diagnosis:
    """A run of a few columns, all of it executed, without incidents."""
    rows = len(next(iter(columns.values())))  # type: ignore[call-overload]  # any sequence
    run = made_runs.run_of({"attempted": np.ones(rows, bool), "executed": np.ones(rows, bool), **columns})
    return Diagnosis(run, (made_runs.view_of(run),), (), ())


def near(image: QImage, x: float, y: float, colour: QColor, reach: int = 3) -> bool:
    """Whether a pixel of about this colour lies within a few pixels of a place."""
    for column in range(round(x) - reach, round(x) + reach + 1):
        for row in range(round(y) - reach, round(y) + reach + 1):
            found = image.pixelColor(column, row)
            if (
                max(
                    abs(found.red() - colour.red()),
                    abs(found.green() - colour.green()),
                    abs(found.blue() - colour.blue()),
                )
                < 40
            ):
                return True
    return False


@pytest.mark.parametrize("rows", [6, 300, 5_000, 200_000])
def test_one_spike_is_seen_at_any_length(show: Show, rows: int) -> None:
    loss = np.full(rows, 2.0)
    loss[rows // 2] = 9.0
    window = show(diagnosis_of(loss=loss))
    widget = window.plots.panels["loss"]
    image, area = widget.grab().toImage(), widget.plot_area
    top = round(area.top() + 0.07 * area.height())
    assert near(image, widget.across.pixel(rows // 2), top, DARK["loss"], reach=6)
    assert not near(image, widget.across.pixel(rows // 5), top, DARK["loss"], reach=6)


def test_a_finite_row_between_two_nan_is_drawn(show: Show) -> None:
    loss = np.full(40, np.nan)
    loss[[0, 20, 39]] = 1.0, 2.0, 3.0
    window = show(diagnosis_of(loss=loss))
    widget = window.plots.panels["loss"]
    image, area = widget.grab().toImage(), widget.plot_area
    # 12 is the height of the lane of marks, which is left out above the curve
    middle = (area.top() + 14 + area.bottom()) / 2
    assert near(image, widget.across.pixel(20), middle, DARK["loss"])


@pytest.mark.parametrize(("rows", "bad"), [(12, 7), (2_000, 1_311), (200_000, 99_999)])
@pytest.mark.parametrize(("value", "mark"), [(np.nan, NAN_MARK), (np.inf, INF_MARK), (-np.inf, NEG_INF_MARK)])
def test_one_bad_row_is_marked_at_any_length(show: Show, rows: int, bad: int, value: float, mark: Mark) -> None:
    loss = np.full(rows, 2.0)
    loss[bad] = value
    window = show(diagnosis_of(loss=loss))
    widget = window.plots.panels["loss"]
    plotted = widget.plotted
    assert isinstance(plotted, Curves)
    assert lanes(plotted.seen, len(window.session.rows.skipped) > 0) == (mark,)
    image = widget.grab().toImage()
    assert near(image, widget.across.pixel(bad), widget.plot_area.top() + 6, DARK[mark.role])
    assert not near(image, widget.across.pixel(rows // 4), widget.plot_area.top() + 6, DARK[mark.role])


def test_zero_and_negative_norms_are_marked_on_the_log_axis(show: Show) -> None:
    window = show(diagnosis_of(loss=np.ones(30), grad_norm=np.where(np.arange(30) == 11, 0.0, 1.5)))
    plotted = window.plots.panels["grad_norm"].plotted
    assert isinstance(plotted, Curves)
    assert plotted.log
    assert lanes(plotted.seen, skips=False, below=True) == (ZERO_MARK,)


def test_skipped_rows_are_marked_in_every_panel(show: Show) -> None:
    window = show(made_runs.clock_drift())
    assert window.session.rows.skipped.tolist() == [2, 3]
    for panel_id in ("loss", "grad_norm", "clocks", "alignment"):
        widget = window.plots.panels[panel_id]
        image, plotted = widget.grab().toImage(), widget.plotted
        assert isinstance(plotted, Curves)
        lane = lanes(plotted.seen, len(window.session.rows.skipped) > 0).index(SKIPPED_MARK)
        height = widget.plot_area.top() + LANE * (lane + 0.5)
        for row in (2, 3):
            assert near(image, widget.across.pixel(row), height, DARK["warn"])
        assert not near(image, widget.across.pixel(5), height, DARK["warn"])


def test_marks_differ_in_shape_and_not_only_in_colour(qtbot: QtBot) -> None:
    shapes = []
    for mark in MARKS:
        image = QImage(16, 16, QImage.Format.Format_ARGB32)
        image.fill(0)
        painter = QPainter(image)
        draw_mark(painter, mark, QPointF(8, 8), DARK)
        painter.end()
        shapes.append(tuple(image.pixelColor(x, y).alpha() > 127 for x in range(16) for y in range(16)))
    assert len(set(shapes)) == len(MARKS)
    assert all(any(shape) for shape in shapes)


def test_a_loss_over_many_decades_goes_to_a_log_axis_and_an_ordinary_one_does_not(show: Show) -> None:
    explosion = opened(made_runs.explosion()).plots[0]["loss"]
    ordinary = opened(made_runs.drawn(2_000)).plots[0]["loss"]
    assert explosion is not None
    assert ordinary is not None
    assert (explosion.log, ordinary.log) == (True, False)


def test_a_panel_whose_columns_are_missing_says_which(show: Show) -> None:
    window = show(diagnosis_of(loss=np.ones(30)))
    widget = window.plots.panels["alignment"]
    assert widget.plotted is None
    assert widget.height() < 40
    assert widget.panel.missing(window.session.run) == ("update_cosine",)
    action = window.menus.panels["alignment"]
    assert not action.isEnabled()
    assert action.toolTip() == "not recorded: update_cosine"
    assert window.menus.panels["loss"].isEnabled()


def _needed(column: Column) -> int:
    return column.stack.totalHeightForWidth(column.viewport().width())


@pytest.mark.parametrize("size", [(1280, 800), (1440, 900), (1180, 700)])
@pytest.mark.parametrize("sample", SAMPLES)
def test_nothing_is_cut_or_overlaps(window: Window, qtbot: QtBot, size: tuple[int, int], sample: str) -> None:
    window.resize(*size)
    with qtbot.waitSignal(window.session.opened):
        window.session.opener.open(f"sample_runs/{sample}")
    for column in (window.summary, window.inspector):
        qtbot.waitUntil(lambda column=column: _needed(column) == column.inside.minimumHeight())
        inside = column.inside
        assert inside.width() <= column.viewport().width()
        assert inside.height() >= inside.minimumHeight()
        shown = [label for label in inside.findChildren(QLabel) if label.isVisible() and label.wordWrap()]
        assert all(label.height() >= label.heightForWidth(label.width()) for label in shown)
    for bar in (window.header, window.foot):
        parts = [part for part in bar.findChildren(QWidget) if part.parent() is bar and part.isVisible()]
        parts.sort(key=QWidget.x)
        assert all(part.geometry().right() < bar.width() for part in parts)
        assert all(a.geometry().right() < b.x() for a, b in pairwise(parts))
    table = window.inspector._neighbours
    assert sum(table.columnWidth(column) for column in range(7)) <= table.viewport().width()


@pytest.mark.parametrize("sample", [name for name in SAMPLES if name != "healthy"])
def test_the_first_matched_finding_is_seen_without_scrolling(window: Window, qtbot: QtBot, sample: str) -> None:
    window.resize(1280, 800)
    with qtbot.waitSignal(window.session.opened):
        window.session.opener.open(f"sample_runs/{sample}")
    column = window.inspector
    qtbot.waitUntil(lambda: _needed(column) == column.inside.minimumHeight())
    first = next(label for label in column._triage.findChildren(QLabel) if "look at: " in label.text())
    qtbot.waitUntil(lambda: first.height() >= first.heightForWidth(first.width()))
    assert first.mapTo(column.viewport(), first.rect().bottomLeft()).y() < column.viewport().height()


@pytest.mark.parametrize("more", [0, 1])
def test_a_skip_that_an_incident_begins_with_is_not_told_twice(show: Show, more: int) -> None:
    executed = ~np.isin(np.arange(60), range(20, 21 + more))
    diagnosis = diagnosis_of(loss=np.ones(60), executed=executed)
    first = Observation(20, "executed", 0.0, "skipped")
    incident = Incident((first,), 19, 20 + more, "warning", "transient", (), {"executed": SignalExtent(20, 1, first)})
    window = show(replace(diagnosis, incidents=(Diagnosed(incident, diagnosis.views[0], 19, ()),)))
    model = window.summary._incidents.model()
    lines = model.index(0, 0).data().splitlines()
    assert lines[1].strip() == "first step skipped"
    assert lines[2:] == ["then 1 skip"] * more


def test_what_has_no_baseline_beside_it_is_written_whole_in_the_chain(show: Show) -> None:
    """Where there is a baseline its dot stands beside the value, and the value ends before it."""
    diagnosis = made_runs.clock_drift()
    window = show(replace(diagnosis, views=(replace(diagnosis.views[0], baselines={}),), incidents=()))
    chain = window.inspector._chain
    window.session.inspect_row(3)
    assert chain._values["update_ratio"].text() == "not applicable"
    dot, base = chain._baselines["loss"]
    assert not dot.isVisible() and not base.isVisible()
    window = show(diagnosis)
    assert dot.isVisible() and base.text()
    window.session.inspect_row(3)
    assert chain._values["update_ratio"].text() == "not applicable"
    assert chain._baselines["update_ratio"][1].isVisible()
    value = chain._values["loss"]
    value.show_cell(Cell("8.12345678901234567", center="8", deviation=0.0))
    assert value.fontMetrics().horizontalAdvance(value.text()) <= dot.x() - value.x()
    value.show_cell(Cell("8.12345678901234567"))
    assert value.text() == "8.12345678901234567"


def test_a_zoom_and_back_is_not_a_range_to_go_back_to(qtbot: QtBot, show: Show) -> None:
    """Neither is one to which the sums of the zoom add up but for a rounding."""
    window = show(made_runs.healthy(600))
    session = window.session
    whole = session.range
    for key in (Qt.Key.Key_Plus, Qt.Key.Key_Minus):
        qtbot.keyClick(window, key)
    assert session.range == pytest.approx(whole)
    qtbot.keyClick(window, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    assert window.foot.text == "No earlier zoom."
    session.show_range(100, 200)
    session.show_range(100 + 1e-12, 200)
    qtbot.keyClick(window, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    assert session.range == pytest.approx(whole)


def test_coinciding_clocks_are_told_apart_by_colour_and_by_shape(show: Show) -> None:
    """Attempted is seen whole and scheduled in dashes, though both are the same number ahead."""
    rows = 60
    executed = np.arange(rows) != 20
    counts = {"attempted_n": np.arange(1, rows + 1), "scheduled_n": np.arange(1, rows + 1)}
    window = show(diagnosis_of(loss=np.ones(rows), executed=executed, executed_n=np.cumsum(executed), **counts))
    widget = window.plots.panels["clocks"]
    image = widget.grab().toImage()
    left, right = (round(widget.across.pixel(row)) for row in (30, 50))

    def columns_with(role: str) -> int:
        colour = DARK[role].name()
        upright = range(scaled(26), image.height())
        return sum(any(image.pixelColor(x, y).name() == colour for y in upright) for x in range(left, right))

    assert columns_with("attempted") == right - left
    assert 0.3 < columns_with("scheduled") / (right - left) < 0.8


def test_no_text_is_smaller_than_eleven_pixels(show: Show) -> None:
    window = show(made_runs.drawn(2_000))
    shown = [widget for widget in window.findChildren(QWidget) if widget.isVisible()]
    assert min(QFontInfo(widget.font()).pixelSize() for widget in shown) >= 11
    marked = [label.text() for label in window.findChildren(QLabel)]
    assert all(int(size) >= 11 for text in marked for size in re.findall(r"font-size:(\d+)px[^>]*>[^&<]", text))


def test_the_left_column_folds_first(window: Window) -> None:
    window.session.show(opened(made_runs.drawn(2_000)))
    window.resize(1280, 800)
    assert window.summary.isVisible()
    window.resize(1000, 700)
    assert not window.summary.isVisible()
    assert window.inspector.isVisible()
    window.resize(1280, 800)
    assert window.summary.isVisible()


@pytest.mark.parametrize("width", [900, 1100, 1250, 1440])
def test_the_menus_and_the_keys_have_room_in_a_narrow_window(window: Window, qtbot: QtBot, width: int) -> None:
    window.resize(width, 600)
    with qtbot.waitSignal(window.session.opened):
        window.session.opener.open("sample_runs/update_against_gradient")
    menus, told = window.header.menus, window.foot._told
    qtbot.waitUntil(lambda: menus.actionGeometry(menus.actions()[-1]).right() < menus.width())
    assert not any(each.isVisible() for each in menus.findChildren(QToolButton))
    assert told.fontMetrics().horizontalAdvance(told.text()) <= told.width()
    assert told.text().endswith("? keys")
    qtbot.keyClick(window, Qt.Key.Key_J)
    assert window.header._step.isVisible()


def test_checks_are_counted_and_unfold(qtbot: QtBot, show: Show) -> None:
    window = show(made_runs.drawn(2_000))
    folds = {button.accessibleName(): button for button in window.summary.findChildren(QPushButton)}
    passed = folds["Checks: passed"]
    assert "1 passed" in passed.text()

    def told() -> str:
        return " ".join(label.text() for label in window.summary.findChildren(QLabel) if label.isVisible())

    assert "3 ahead of executed" in told() and "loss_count was not recorded" in told()
    assert "skip rate" not in told()
    qtbot.mouseClick(passed, Qt.MouseButton.LeftButton)
    assert "skip rate" in told()
    qtbot.mouseClick(passed, Qt.MouseButton.LeftButton)
    assert "skip rate" not in told()


def test_a_value_can_be_selected_where_the_mouse_is(qtbot: QtBot, show: Show) -> None:
    window = show(made_runs.drawn(2_000))
    value = window.inspector._chain._values["loss"]
    middle = QPointF(value.rect().center())
    QApplication.sendEvent(value, QEnterEvent(middle, middle, middle))
    qtbot.mouseDClick(value, Qt.MouseButton.LeftButton, pos=QPoint(6, value.height() // 2))
    assert value.selectedText() and value.selectedText() in value.text()
    assert not value.grab().isNull()


def test_the_legend_tells_every_mark(window: Window) -> None:
    foot = window.foot
    assert isinstance(foot, Foot)
    assert "not recorded" in foot._legend.toolTip()
    assert foot._legend.width() >= foot._legend.sizeHint().width()


def test_every_control_has_a_name(show: Show) -> None:
    window = show(made_runs.drawn(2_000))
    for widget in window.plots.panels.values():
        assert widget.accessibleName()
        assert widget.accessibleDescription()
    for action in window.actions():
        assert action.text()
        assert action.shortcuts()


def test_colours_change_with_the_theme_and_come_from_one_table(show: Show) -> None:
    window = show(made_runs.drawn(2_000))
    corner = QPoint(225, window.height() - 40)
    assert window.grab().toImage().pixelColor(corner) == DARK["window"]
    window.toggle_theme()
    assert window.grab().toImage().pixelColor(corner) == LIGHT["window"]


@pytest.mark.parametrize("many", [1, 3, 5_000])
def test_every_incident_is_a_band_however_many_there_are(show: Show, many: int) -> None:
    rows = 20_000
    diagnosis = diagnosis_of(loss=np.ones(rows), grad_norm=np.ones(rows))
    view, firsts = diagnosis.views[0], np.linspace(100, rows - 200, many).astype(int)
    found = tuple(made_runs.incident_at(view, int(first), int(first) + 1) for first in firsts)
    window = show(Diagnosis(diagnosis.run, (view,), found, ()))
    window.session.show_all()
    widget = window.plots.panels["loss"]
    image, height = widget.grab().toImage(), round(widget.plot_area.top() + 5)
    for first in firsts[:: max(1, many // 50)]:
        x = round(widget.across.pixel(float(first)) + 1)
        assert image.pixelColor(x, height) != DARK["panel"]
    assert image.pixelColor(round(widget.across.pixel(20)), height) == DARK["panel"]
    assert window.summary._incidents.model().rowCount() == many
    overview = window.plots.overview.grab().toImage()
    x = round(window.plots.overview.across.pixel(float(firsts[len(firsts) // 2])))
    seen = {overview.pixelColor(x, y).name() for y in range(overview.height())}
    assert DARK["loss"].name() in seen, "the curve is before the bars"


def test_of_many_incidents_only_the_cards_in_sight_are_written(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    """To write a card rows are read, which for hundreds of them would hold up the window."""
    written = []
    monkeypatch.setattr(incidents, "card", lambda *of: (written.append(of), card(*of))[1])
    diagnosis = diagnosis_of(loss=np.ones(20_000), grad_norm=np.ones(20_000))
    view, firsts = diagnosis.views[0], range(100, 19_800, 40)
    window = show(replace(diagnosis, incidents=tuple(made_runs.incident_at(view, at, at + 1) for at in firsts)))
    cards = window.summary._incidents
    window.grab()
    assert 3 < len({id(diagnosed) for diagnosed, _ in written}) < 30
    window.session.select(len(firsts) - 1)
    window.grab()
    last = cards.visualRect(cards.model().index(len(firsts) - 1, 0))
    assert cards.viewport().rect().contains(last), "the list is at the last one"
    assert len({id(diagnosed) for diagnosed, _ in written}) < 60


def _is_cut(table: QTableView, column: int) -> bool:
    """Whether a column is in sight, but not the whole of it."""
    begin = table.columnViewportPosition(column)
    return begin < table.viewport().width() < begin + table.columnWidth(column)


@pytest.mark.parametrize(("size", "scrolls"), [(1.0, False), (1e-6, True)])
def test_long_steps_and_small_values_are_not_cut(show: Show, size: float, scrolls: bool) -> None:
    """Every column is as wide as its texts; those that do not fit beside each other are scrolled to."""
    rows, late = 400, 9_999_800
    steps = np.arange(rows) + late
    random = np.random.default_rng(4)
    run = made_runs.run_of(
        {
            "step": steps,
            "loss": size * (2.2 + random.normal(size=rows) * 0.03),
            "grad_norm": size * 0.34 * np.exp(random.normal(size=rows) * 0.1),
            "clip_coef": np.full(rows, 0.261 * size),
            "attempted": np.ones(rows, bool),
            "executed": np.ones(rows, bool),
            "attempted_n": steps,
            "executed_n": steps - 3,
            "scheduled_n": steps,
            "update_ratio": size * 0.98 * np.exp(random.normal(size=rows) * 0.1),
            "update_cosine": 0.6 + random.normal(size=rows) * 0.05,
        }
    )
    view = made_runs.view_of(run)
    window = show(Diagnosis(run, (view,), (made_runs.incident_at(view, 200, 201),), ()))
    table = window.inspector._neighbours
    measure, model = table.fontMetrics(), table.model()
    for column in range(model.columnCount()):
        texts = [model.index(row, column).data() for row in range(model.rowCount())]
        assert max(map(measure.horizontalAdvance, texts)) + 4 <= table.columnWidth(column)
    assert table.horizontalScrollBar().isVisible() == scrolls
    cut = [column for column in range(model.columnCount()) if _is_cut(table, column)]
    assert bool(cut) == scrolls
    for column in cut:
        area = table.visualRect(model.index(0, column)).adjusted(scaled(12), 0, 0, 0) & table.viewport().rect()
        assert area.width() > scaled(12)
        image = table.viewport().grab(area).toImage()
        colours = {image.pixel(x, y) for x in range(image.width()) for y in range(image.height())}
        assert len(colours) == 1, "dots, and no part of a number"
    table.scrollTo(model.index(0, model.columnCount() - 1))
    assert table.viewport().rect().contains(table.visualRect(model.index(6, model.columnCount() - 1)))
    title = window.inspector._title
    assert title.sizeHint().width() <= title.width()


@pytest.mark.parametrize("value", ["1.203e-05", "NaN ◆"])
def test_a_head_never_shows_a_part_of_a_number(qtbot: QtBot, value: str) -> None:
    spans = [Span("raw   "), Span(value, fixed=True), Span("   baseline "), Span("1.240e-05", fixed=True)]
    whole = width(spans)
    assert fitting(spans, whole) == spans
    for room in (whole - 1, width([*spans[:2], Span(" …")])):
        assert [span.text for span in fitting(spans, room)] == ["raw   ", value, " …"]
