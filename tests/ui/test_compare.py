"""Two runs beside each other, a directory of runs, and what goes to the clipboard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from recorder.store import RunWriter
from spikeview.analysis.extremes import POS_INF
from spikeview.analysis.pyramid import build
from spikeview.cells import Kind
from spikeview.rules.diagnosis import Diagnosis
from spikeview.ui.alignment import Alignment, aligned
from spikeview.ui.layout import Layout
from spikeview.ui.opening import opened, undiagnosed
from spikeview.ui.panels.plotted import Curves
from spikeview.ui.plot.curves_widget import CurvesWidget
from spikeview.ui.plot.heat_widget import HeatWidget
from spikeview.ui.plot.marks import INF_MARK, LANE, NAN_MARK, NEG_INF_MARK, SKIPPED_MARK, Mark
from spikeview.ui.plot.overlay import seen_beside
from spikeview.ui.theme import DARK
from spikeview.ui.window import Window
from tests.ui import made_runs
from tests.ui.conftest import SAMPLES
from tests.ui.test_drawing import near
from tests.ui.test_panels import everything

Open = Callable[[str], Window]
Show = Callable[[Diagnosis], Window]
Lay = Callable[[int, dict[str, dict[str, object]]], CurvesWidget]


def test_runs_are_aligned_by_step_and_by_executed_steps() -> None:
    ours = made_runs.run_of({"loss": np.ones(6), "step": [10, 11, 12, 13, 14, 15], "executed_n": [1, 2, 3, 4, 5, 6]})
    theirs = made_runs.run_of({"loss": np.ones(4), "step": [12, 14, 16, 18], "executed_n": [1, 2, 2, 3]})
    by_step, by_executed = (aligned(ours, theirs, clock) for clock in ("step", "executed"))
    assert [by_step.beside(row) for row in range(6)] == [None, None, 0, 0, 1, 1]
    assert [by_executed.beside(row) for row in range(6)] == [0, 2, 3, None, None, None]
    assert by_step.cuts(np.array([0, 2, 3, 5, 6])).tolist() == [0, 0, 1, 2, 2]


@pytest.mark.parametrize("back", [[5, 6, 7, 6, 7, 8], [5, 5, 5, 5, 5, 5]])
def test_a_step_that_goes_back_or_stands_still_does_no_harm(back: list[int]) -> None:
    ours = made_runs.run_of({"loss": np.ones(6), "step": back})
    alignment = aligned(ours, ours, "step")
    cuts = alignment.cuts(np.arange(7))
    assert (np.diff(cuts) >= 0).all()
    assert cuts[-1] == 6


def test_a_run_is_laid_behind_another_and_taken_away_again(qtbot: QtBot, open_sample: Open) -> None:
    window = open_sample("bf16_clipped")
    with qtbot.waitSignal(window.session.comparison.changed):
        window.session.comparison.open(str(SAMPLES / "fp16_overflow"))
    overlay = window.session.comparison.overlay
    assert overlay is not None
    beside = window.inspector._beside
    assert beside.isVisible()
    told = {label.accessibleName(): label.text() for label in beside.findChildren(QLabel)}
    assert told["loss of the other run"] == "0.04156"
    assert told["difference of loss"] == "+9.96e-05 (+0.24 %)"
    assert told["difference of learning rate"] == "same"
    assert any(
        label.text() == "INCIDENTS: 1 IN BOTH, 0 ONLY HERE, 0 ONLY THERE" for label in beside.findChildren(QLabel)
    )
    assert "vs fp16_overflow" in window.header._compare.text()
    window.session.inspect_row(9)
    assert told != {label.accessibleName(): label.text() for label in beside.findChildren(QLabel)}
    qtbot.keyClick(window, Qt.Key.Key_E, Qt.KeyboardModifier.AltModifier)
    qtbot.waitUntil(lambda: window.session.comparison.overlay is not overlay)
    qtbot.keyClick(window, Qt.Key.Key_W, Qt.KeyboardModifier.ControlModifier)
    assert not beside.isVisible()
    assert window.header._compare.text() == "Compare"


Losses = dict[int, float]


def record(path: Path, spikes: Losses, rows: range, batches: dict[int, str]) -> str:
    """A run of a calm loss with a few spikes; the loop's step begins at 0 and batches are called by their step."""
    writer = RunWriter.create(path, {})
    for row, step in enumerate(rows):
        loss = spikes.get(step, 2.0 + 0.01 * (step % 7))
        batch = batches.get(step, f"batch-{step}")
        known = {"row": row, "step": step, "optimizer": "a", "executed": True, "executed_n": row + 1}
        writer.append({**known, "loss": loss, "batch_id": batch})
    writer.close()
    return str(path)


@pytest.fixture
def two_runs(window: Window, qtbot: QtBot, tmp_path: Path) -> Window:
    """Both are out on the batch `bad`, at 150 and at 260, and at 200 on others; each has one more alone."""
    ours = record(tmp_path / "one", {80: 9.0, 150: 9.0, 200: 9.0}, range(50, 300), {150: "bad"})
    theirs = record(tmp_path / "other", {20: 9.0, 201: 9.0, 260: 9.0}, range(280), {201: "x", 260: "bad"})
    with qtbot.waitSignal(window.session.opened):
        window.session.opener.open(ours)
    with qtbot.waitSignal(window.session.comparison.changed):
        window.session.comparison.open(theirs)
    return window


def listed(window: Window) -> list[str]:
    model = window.inspector._beside._incidents.model()
    return [model.index(row, 0).data(Qt.ItemDataRole.AccessibleTextRole) for row in range(model.rowCount())]


def test_the_incidents_of_two_runs_stand_in_one_list(two_runs: Window) -> None:
    """By their onset, each once; the run that has it is told in words, and what the other has there."""
    told = [
        [line.split(" loss")[0] + "".join(line.partition(" · ")[1:]) for line in each.splitlines()]
        for each in listed(two_runs)
    ]
    assert told == [
        ["only there: step 20", "no row here"],
        ["only here: step 80", "no incident begins there"],
        ["both: step 150", "there step 260 · same batch"],
        ["both: step 200", "there step 201 · other batch"],
    ]
    beside = two_runs.inspector._beside
    assert beside._incidents.isVisible()
    assert beside._counted.accessibleName() == "incidents: 2 in both, 1 only here, 1 only there"
    two_runs.session.comparison.clear()
    assert not beside._incidents.isVisible()


def test_the_clock_of_the_comparison_says_which_onsets_are_beside_each_other(qtbot: QtBot, two_runs: Window) -> None:
    with qtbot.waitSignal(two_runs.session.comparison.changed):
        qtbot.keyClick(two_runs, Qt.Key.Key_E, Qt.KeyboardModifier.AltModifier)
    told = [line for each in listed(two_runs) for line in each.splitlines()]
    assert [line.split(" loss")[0] for line in told[::2]] == [
        "only there: step 20",
        "only here: step 80",
        "both: step 150",
        "only here: step 200",
        "only there: step 201",
    ]
    assert told[1] == "no incident begins here", "by executed steps their 21st is beside our 21st, at step 70"


def test_the_list_of_both_runs_is_walked_by_keys(qtbot: QtBot, two_runs: Window) -> None:
    session, incidents = two_runs.session, two_runs.inspector._beside._incidents
    incidents.setFocus()
    before = session.cursor
    qtbot.keyClick(incidents, Qt.Key.Key_Return)
    assert two_runs.foot.text == "No row of this run stands beside step 20 of the other."
    assert session.cursor == before
    for _ in range(3):
        qtbot.keyClick(incidents, Qt.Key.Key_Down)
    qtbot.keyClick(incidents, Qt.Key.Key_Return)
    assert session.selected is session.incidents[2]
    with qtbot.waitSignal(session.comparison.changed):
        session.comparison.use_clock("executed")
    assert incidents.currentIndex().row() == 3, "it stays at the incident of step 200"
    for _ in range(3):
        qtbot.keyClick(incidents, Qt.Key.Key_Up)
    qtbot.keyClick(incidents, Qt.Key.Key_Return)
    assert session.observed == 20, "the row of the 21st executed step"
    assert incidents.hasFocus()


def test_what_is_not_diagnosed_yet_is_not_said_to_have_no_incident(qtbot: QtBot, two_runs: Window) -> None:
    session, beside = two_runs.session, two_runs.inspector._beside
    assert session.shown is not None
    early = replace(session.shown, diagnosis=undiagnosed(session.shown.diagnosis.run), diagnosed=False)
    with qtbot.waitSignal(session.comparison.changed):
        session.show(early)
    assert beside._counted.accessibleName() == "incidents: still diagnosing"
    assert not beside._incidents.isVisible()


def test_of_two_optimizers_the_incidents_of_the_shown_one_are_listed(
    qtbot: QtBot, window: Window, tmp_path: Path
) -> None:
    for name, spikes in (("one", {("a", 100)}), ("other", {("a", 100), ("b", 150)})):
        writer = RunWriter.create(tmp_path / name, {})
        for row in range(400):
            step, optimizer = row // 2, "ab"[row % 2]
            loss = 9.0 if (optimizer, step) in spikes else 2.0 + 0.01 * (step % 7)
            writer.append({"row": row, "step": step, "optimizer": optimizer, "executed": True, "loss": loss})
        writer.close()
    with qtbot.waitSignal(window.session.opened):
        window.session.opener.open(str(tmp_path / "one"))
    with qtbot.waitSignal(window.session.comparison.changed):
        window.session.comparison.open(str(tmp_path / "other"))
    counted = window.inspector._beside._counted
    assert counted.accessibleName() == "incidents of a: 1 in both, 0 only here, 0 only there"
    with qtbot.waitSignal(window.session.comparison.changed):
        window.session.choose_view(1)
    assert counted.accessibleName() == "incidents of b: 0 in both, 0 only here, 1 only there"
    assert listed(window)[0].startswith("only there: step 150 loss")


@pytest.mark.parametrize("rows", [40, 30_000])
def test_a_spike_of_the_other_run_is_seen_at_its_step(qtbot: QtBot, window: Window, tmp_path: Path, rows: int) -> None:
    for name, spike in (("one", -1), ("other", rows // 2)):
        writer = RunWriter.create(tmp_path / name, {})
        for row in range(rows):
            loss = 9.0 if row == spike else 2.0
            writer.append({"row": row, "step": row + 100, "optimizer": "a", "loss": loss, "executed": True})
        writer.close()
    with qtbot.waitSignal(window.session.opened):
        window.session.opener.open(str(tmp_path / "one"))
    with qtbot.waitSignal(window.session.comparison.changed):
        window.session.comparison.open(str(tmp_path / "other"))
    widget = window.plots.panels["loss"]
    image, area = widget.grab().toImage(), widget.plot_area
    high, across = area.top() + 0.3 * area.height(), widget.across
    columns = [
        x for x in range(int(area.left()), int(area.right())) if image.pixelColor(x, round(high)) != DARK["panel"]
    ]
    cursor = across.pixel(window.session.cursor)
    columns = [x for x in columns if abs(x - cursor) > 3]
    assert columns, "the other run's spike is drawn"
    assert all(abs(x - across.pixel(rows // 2)) < 2 + 12 * (rows < 100) for x in columns)
    assert near(image, across.pixel(rows // 4), area.top() + 0.92 * area.height(), DARK["loss"], reach=12)


@pytest.fixture
def lay(window: Window, qtbot: QtBot, tmp_path: Path) -> Lay:
    """Opens a calm run and lays another behind it; `bad` says what either has instead in its middle row."""

    def lay_it(rows: int, bad: dict[str, dict[str, object]]) -> CurvesWidget:
        for name in ("one", "other"):
            writer = RunWriter.create(tmp_path / name, {})
            for row in range(rows):
                known = {"row": row, "step": row + 100, "optimizer": "a", "attempted": True, "executed": True}
                writer.append({**known, "loss": 2.0, **(bad.get(name, {}) if row == rows // 2 else {})})
            writer.close()
        with qtbot.waitSignal(window.session.opened):
            window.session.opener.open(str(tmp_path / "one"))
        with qtbot.waitSignal(window.session.comparison.changed):
            window.session.comparison.open(str(tmp_path / "other"))
        window.session.show_all()
        widget = window.plots.panels["loss"]
        assert isinstance(widget, CurvesWidget)
        return widget

    return lay_it


def lane(widget: CurvesWidget) -> list[list[str]]:
    """The colours of the lane of marks, which is the only one, by columns of pixels from the plot's left on."""
    image, area = widget.grab().toImage(), widget.plot_area
    upright = range(int(area.top()), int(area.top() + LANE))
    return [[image.pixelColor(x, y).name() for y in upright] for x in range(int(area.left()), int(area.right()))]


@pytest.mark.parametrize("rows", [40, 30_000])
@pytest.mark.parametrize("bad", [{"loss": np.nan}, {"loss": np.inf}, {"loss": -np.inf}, {"executed": False}])
def test_a_bad_row_of_the_other_run_is_marked_at_its_step(lay: Lay, rows: int, bad: dict[str, object]) -> None:
    """In the lane of its kind, which this run has no mark in; this run's own is another shape and colour."""
    widget = lay(rows, {"other": bad})
    left, ground = widget.across.left, DARK["panel"].name()
    marked = [left + x for x, colours in enumerate(lane(widget)) if set(colours) != {ground}]
    marked = [x for x in marked if abs(x - widget.across.pixel(widget.session.cursor)) > 2]
    assert marked, "what the other run's curve has a gap for is marked"
    assert all(abs(x - widget.across.pixel(rows // 2)) < 8 for x in marked)


@pytest.mark.parametrize(("value", "mark"), [(np.nan, NAN_MARK), (np.inf, INF_MARK), (-np.inf, NEG_INF_MARK)])
def test_the_same_bad_row_in_both_runs_is_seen_to_be_in_both(lay: Lay, value: float, mark: Mark) -> None:
    """The other run's shape is larger and hollow, and seen around this one's with a gap between them."""
    widget = lay(40, {"one": {"loss": value}, "other": {"loss": value}})
    both = lane(widget)
    widget.session.comparison.clear()
    alone = lane(widget)
    own = DARK[mark.role].name()
    assert any(own in colours for colours in alone)
    assert [colours.count(own) for colours in both] == [colours.count(own) for colours in alone]
    reds = [[QColor(colour).red() for colour in both[x]] for x, colours in enumerate(alone) if own in colours]
    assert any(
        upright[at] + 20 < min(max(upright[:at], default=0), max(upright[at + 1 :], default=0))
        for upright in reds
        for at in range(len(upright))
    )


def test_there_is_no_lane_for_marks_of_the_other_run_that_no_row_is_beside(qtbot: QtBot, open_sample: Open) -> None:
    """Its only Inf is at step 6, after the end of this run; where it is beside a row it has its lane."""
    window = open_sample("amp_clock_drift")
    with qtbot.waitSignal(window.session.comparison.changed):
        window.session.comparison.open(str(SAMPLES / "fp16_overflow"))
    widget = window.plots.panels["loss"]
    assert isinstance(widget, CurvesWidget) and isinstance(widget.plotted, Curves)
    assert widget.parts(widget.plotted, widget.plot_area).above == (SKIPPED_MARK,)
    overlay = window.session.comparison.overlay
    assert overlay is not None
    bad = np.full(300, 2.0)
    bad[[70, 200]] = np.inf
    loss = Curves(
        False, (), (build(bad, np.where(np.isinf(bad), Kind.POS_INF, Kind.FINITE).astype(np.uint8)),), None, None
    )
    for first, last in [(0, 69), (0, 70), (70, 70), (71, 199), (71, 250), (64, 127), (192, 255), (201, 299), (71, 190)]:
        alignment = Alignment(np.arange(first, last + 1), np.arange(300))
        seen = seen_beside(replace(overlay, alignment=alignment, curves={"loss": loss}), "loss")
        assert bool(seen & POS_INF) == bool(np.isinf(bad[first : last + 1]).any())


def test_the_other_run_is_drawn_as_the_panel_draws_its_own(qtbot: QtBot, window: Window, tmp_path: Path) -> None:
    """Stairs where a clock is another from a row on, and dashes where it may lie upon another clock."""
    rows, late = 12, 6
    for name in ("one", "other"):
        writer = RunWriter.create(tmp_path / name, {})
        for row in range(rows):
            known = {"row": row, "step": row, "optimizer": "a", "loss": 2.0, "attempted": True, "executed": True}
            ahead = 2 * (name == "other" and row >= late)
            clocks = {"attempted_n": row + 1, "scheduled_n": row + 1, "executed_n": row + 1 - ahead}
            writer.append({**known, **clocks})
        writer.close()
    with qtbot.waitSignal(window.session.opened):
        window.session.opener.open(str(tmp_path / "one"))
    with qtbot.waitSignal(window.session.comparison.changed):
        window.session.comparison.open(str(tmp_path / "other"))
    widget = window.plots.panels["clocks"]
    assert isinstance(widget, CurvesWidget) and isinstance(widget.plotted, Curves)
    image, across = widget.grab().toImage(), widget.across
    values = widget.parts(widget.plotted, widget.plot_area).values

    def colours(row: float, low: float, high: float) -> list[QColor]:
        """From one share of the height to another: the curves lie at a tenth of it and at two thirds."""
        heights = range(*(round(values.bottom() - share * values.height()) for share in (high, low)))
        return [image.pixelColor(round(across.pixel(row)), y) for y in heights]

    assert all(colour.red() < 60 for colour in colours(late - 0.5, 0.25, 0.5)), "no slope before the step"
    level = [colours(row, 0.55, 0.8) for row in np.linspace(late + 0.5, rows - 2, 200)]
    assert all(any(colour.red() > 60 for colour in upright) for upright in level)
    dashed = [any(colour.red() - colour.green() > 20 for colour in upright) for upright in level]
    assert 0.3 < np.mean(dashed) < 0.8


def test_the_other_run_is_not_drawn_across_its_gap(lay: Lay) -> None:
    """This run's row is low there, so that at the height of the other run's curve nothing else is drawn."""
    widget = lay(40, {"one": {"loss": 1.0}, "other": {"loss": np.nan}})
    image, across = widget.grab().toImage(), widget.across
    heights = range(int(widget.plot_area.top() + LANE + 4), int(widget.plot_area.center().y()))

    def drawn(row: float) -> bool:
        """In the hue of a loss, as no line of the grid is."""
        colours = [image.pixelColor(round(across.pixel(row)), y) for y in heights]
        return any(colour.blue() - colour.red() > 40 for colour in colours)

    assert drawn(5.5) and drawn(15.5)
    assert not drawn(19.9) and not drawn(20.1)


def test_what_cannot_be_compared_is_told_and_changes_nothing(qtbot: QtBot, open_sample: Open, tmp_path: Path) -> None:
    window = open_sample("healthy")
    window.session.comparison.open(str(tmp_path / "nowhere"))
    qtbot.waitUntil(lambda: window.foot.text.startswith("Not compared: "))
    assert window.session.comparison.other is None


def test_a_directory_of_runs_is_a_table_to_choose_from(qtbot: QtBot, window: Window) -> None:
    window.session.opener.open(str(SAMPLES))
    qtbot.waitUntil(lambda: window.session.opener.listing is not None)
    table = window.browser.table
    assert window.browser.isVisible()
    names = [table.item(line, 0).text() for line in range(table.rowCount())]
    line = names.index("amp_clock_drift")
    qtbot.waitUntil(lambda: table.item(line, 3).text() != "", timeout=30_000)
    assert [table.item(line, column).text() for column in range(1, 4)] == ["6", "closed", "step 2 pre-clip norm Inf"]
    table.setCurrentCell(line, 0)
    with qtbot.waitSignal(window.session.opened):
        qtbot.keyClick(table, Qt.Key.Key_Return)
    assert window.session.run.name == "amp_clock_drift"
    assert not window.browser.isVisible()


def test_neighbours_and_batch_are_copied(qtbot: QtBot, open_sample: Open) -> None:
    window = open_sample("amp_clock_drift")
    clipboard = QGuiApplication.clipboard()
    qtbot.keyClick(window, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = clipboard.text().splitlines()
    assert lines[0] == "| step | loss | norm | coef | att/exe/sch | ratio | cos |"
    assert len(lines) == 8
    assert lines[4].startswith("| 2 | 4.174 | Inf ▲ |")
    qtbot.keyClick(window, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert clipboard.text().splitlines()[0] == "step,loss,norm,coef,att/exe/sch,ratio,cos"
    qtbot.keyClick(window, Qt.Key.Key_B)
    assert window.foot.text.startswith(("Copied batch", "The batch was not recorded"))


def test_heatmaps_of_two_runs_stand_below_each_other_in_the_same_colours(qtbot: QtBot, show: Show) -> None:
    """Layer beside layer though the other run has them in another order, in the colours of the larger of the two."""
    window, other = show(everything()), everything()
    layers = other.run.layers
    assert layers is not None
    names, ratios = (
        layers["name"].to_pylist()[::-1],
        [ratio * 100 for ratio in layers["update_ratio"].to_pylist()[::-1]],
    )
    rows = layers["row"].to_pylist()[::-1]
    swapped = pa.table({"row": rows, "name": names, "update_ratio": ratios})
    run = replace(other.run, layers=swapped, path="runs/other")
    window.plots.arrange(Layout(shown=frozenset({"layer_ratios"})))
    qtbot.waitUntil(lambda: window.session.series.of("layer_ratios") is not None)
    widget = window.plots.panels["layer_ratios"]
    assert isinstance(widget, HeatWidget)
    area, alone = widget.plot_area, widget.grab().toImage()
    with qtbot.waitSignal(window.session.comparison.changed):
        window.session.comparison.other = opened(Diagnosis(run, (made_runs.view_of(run),), (), ()))
        window.session.comparison.use_clock("step")
    (top, ours), (below, theirs) = widget._parts(widget.plot_area)
    assert ours.names == theirs.names
    np.testing.assert_allclose(theirs.values, 100 * ours.values)
    together, x = widget.grab().toImage(), round(widget.across.pixel(int(ours.positions[0]))) + 2
    brightest = int(np.nanargmax(ours.values[:, 0]))

    def colour(image: QImage, box: QRectF) -> int:
        line = box.height() / len(ours.names)
        return image.pixelColor(x + 40, round(box.top() + (brightest + 0.8) * line)).red()

    assert colour(together, top) < colour(together, below)
    assert colour(together, top) < colour(alone, area)
    below = widget._parts(widget.plot_area)[1][0]
    qtbot.mouseMove(widget, QPoint(x, round(below.center().y())))
    told = "".join(span.text for span in widget.head(int(ours.positions[0])))
    assert told.startswith("other run   step ")
    qtbot.mouseClick(widget, Qt.MouseButton.LeftButton, pos=QPoint(x, round(below.top() + 9)))
    assert widget.chosen == ours.names[0]
    widget.grab()
