"""What a person does in the window, on the recorded sample runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QTextDocument
from PySide6.QtWidgets import QComboBox, QFileDialog, QLabel, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from spikeview.rules.diagnosis import Diagnosis, diagnose
from spikeview.ui.actions import PANEL_KEYS
from spikeview.ui.keys import KeysDialog
from spikeview.ui.opening import opened
from spikeview.ui.panels import PANELS
from spikeview.ui.window import Window
from tests.ui import made_runs
from tests.ui.conftest import SAMPLES, Ending

# said by the plugin that stands in for a display, of every dialog
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")

Open = Callable[[str], Window]
Show = Callable[[Diagnosis], Window]


def inspected(window: Window) -> dict[str, str]:
    """What the inspector's chain shows, by the name of the value."""
    chain = window.inspector.widget().findChildren(QLabel)
    return {label.accessibleName(): label.text() for label in chain if label.accessibleName()}


def headline(window: Window) -> tuple[str, str]:
    """The two lines above the chain, without their markup."""
    text = QTextDocument()
    text.setHtml(window.inspector._title.text())
    return text.toPlainText().replace("\xa0", " "), window.inspector._observed.accessibleName()


def click_row(qtbot: QtBot, window: Window, panel: str, row: int) -> None:
    widget = window.plots.panels[panel]
    at = QPoint(round(widget.across.pixel(row)), widget.height() // 2)
    qtbot.mouseMove(widget, at)
    qtbot.mouseClick(widget, Qt.MouseButton.LeftButton, pos=at)


def drag(
    qtbot: QtBot,
    widget: QWidget,
    start: QPoint,
    by: int,
    modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
) -> None:
    qtbot.mousePress(widget, Qt.MouseButton.LeftButton, modifier, start)
    for moved in (by // 2, by):
        qtbot.mouseMove(widget, start + QPoint(moved, 0))
    qtbot.mouseRelease(widget, Qt.MouseButton.LeftButton, modifier, start + QPoint(by, 0))


def test_opening_a_run_goes_to_the_transition_before_its_first_bad_observation(open_sample: Open) -> None:
    window = open_sample("amp_clock_drift")
    assert window.session.incident == 0
    assert (window.session.cursor, window.session.observed) == (1, 2)
    assert inspected(window)["pre-clip norm"] == "7.555"
    assert window.windowTitle().startswith("amp_clock_drift · step 1")
    cards = window.summary.findChildren(type(window.summary._incidents))[0].model()
    assert cards.rowCount() == 1
    assert "step 2" in cards.data(cards.index(0, 0))


def test_the_failed_check_is_told_with_its_evidence(open_sample: Open) -> None:
    window = open_sample("amp_clock_drift")
    texts = [label.text() for label in window.summary.findChildren(QLabel)]
    assert any("2" in text and "executed" in text and "rows" in text for text in texts)


def test_an_update_that_went_wrong_is_inspected_itself(open_sample: Open) -> None:
    window = open_sample("update_against_gradient")
    assert (window.session.cursor, window.session.observed) == (122, 123)
    assert inspected(window)["cosine"] == "-0.2584"


@pytest.mark.parametrize(
    ("sample", "three", "observed"),
    [
        ("amp_clock_drift", "1 → θ2 → loss 2   4.174", "first bad: pre-clip norm Inf"),
        (
            "update_against_gradient",
            "122 → θ123 → loss 123   0.2803, +0.4 MADs",
            "first bad: cosine -0.2584, -5.8 MADs",
        ),
        ("bf16_explosion", "5 → θ6 → loss 6   3.785e+08, +35 MADs", "also pre-clip norm 3.892e+09, +70 MADs"),
        ("bf16_clipped", "5 → θ6 → loss 6   3.785e+08, +35 MADs", "also pre-clip norm 3.892e+09, +70 MADs"),
        ("fp16_overflow", "5 → θ6 → loss 6   Inf ▲", "also pre-clip norm Inf"),
        ("healthy", "599 → the recording ends here", "nothing left its baseline"),
    ],
)
def test_the_headline_names_what_was_first_bad(open_sample: Open, sample: str, three: str, observed: str) -> None:
    window = open_sample(sample)
    assert headline(window) == (three, observed)


def test_the_headline_follows_the_cursor(qtbot: QtBot, open_sample: Open) -> None:
    window = open_sample("update_against_gradient")
    qtbot.keyClick(window, Qt.Key.Key_Right)
    assert headline(window)[1] == "cosine -0.3817, -6.8 MADs"
    qtbot.keyClick(window, Qt.Key.Key_Right)
    assert headline(window)[1] == "nothing left its baseline"
    qtbot.keyClick(window, Qt.Key.Key_Home)
    assert headline(window)[1] == "too few rows before it for a baseline"


@pytest.mark.parametrize(
    ("key", "modifier", "moved"),
    [
        (Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier, 1),
        (Qt.Key.Key_Left, Qt.KeyboardModifier.NoModifier, -1),
        (Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier, 10),
        (Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier, -10),
    ],
)
def test_arrow_keys_move_the_inspector(
    qtbot: QtBot, open_sample: Open, key: Qt.Key, modifier: Qt.KeyboardModifier, moved: int
) -> None:
    window = open_sample("update_against_gradient")
    qtbot.keyClick(window, key, modifier)
    assert window.session.cursor == 122 + moved
    assert inspected(window)["batch"] == str(122 + moved)
    assert f"step {122 + moved}" in window.windowTitle()


def test_home_and_end_and_the_edges_of_the_run(qtbot: QtBot, open_sample: Open) -> None:
    window = open_sample("amp_clock_drift")
    qtbot.keyClick(window, Qt.Key.Key_End)
    qtbot.keyClick(window, Qt.Key.Key_Right)
    assert (window.session.cursor, window.session.observed) == (5, None)
    qtbot.keyClick(window, Qt.Key.Key_Home)
    assert window.session.cursor == 0
    qtbot.keyClick(window, Qt.Key.Key_Left)
    qtbot.keyClick(window, Qt.Key.Key_Left)
    assert (window.session.cursor, window.session.observed) == (-1, 0)
    assert inspected(window)["pre-clip norm"] == "2.835"


def test_n_and_p_walk_the_incidents(qtbot: QtBot, show: Show) -> None:
    window = show(made_runs.drawn())
    assert window.session.incident == 0
    qtbot.keyClick(window, Qt.Key.Key_N)
    assert (window.session.incident, window.session.cursor) == (1, 8219)
    first, last = window.session.range
    assert first < 8219 < last
    assert inspected(window)["cosine"] == "-0.3800"
    qtbot.keyClick(window, Qt.Key.Key_N)
    qtbot.keyClick(window, Qt.Key.Key_N)
    assert window.session.incident == 2
    assert window.foot.text == "This is the last incident."
    qtbot.keyClick(window, Qt.Key.Key_Home)
    qtbot.keyClick(window, Qt.Key.Key_N)
    assert (window.session.incident, window.session.cursor) == (2, 11_231)
    qtbot.keyClick(window, Qt.Key.Key_P)
    assert window.session.incident == 1


@pytest.mark.parametrize("panel", ["loss", "grad_norm", "clocks", "alignment"])
def test_a_click_on_a_panel_inspects_what_led_to_that_row(qtbot: QtBot, open_sample: Open, panel: str) -> None:
    window = open_sample("amp_clock_drift")
    click_row(qtbot, window, panel, 5)
    assert (window.session.cursor, window.session.observed) == (4, 5)
    assert inspected(window)["pre-clip norm"] == "6.435"


def test_a_click_on_a_card_and_on_a_neighbour(qtbot: QtBot, show: Show) -> None:
    window = show(made_runs.drawn())
    cards = window.summary._incidents
    at = cards.visualRect(cards.model().index(2, 0)).center()
    qtbot.mouseClick(cards.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert window.session.incident == 2
    table = window.inspector._neighbours
    before = window.session.cursor
    qtbot.mouseClick(
        table.viewport(), Qt.MouseButton.LeftButton, pos=table.visualRect(table.model().index(6, 0)).center()
    )
    assert window.session.cursor == before + 3


def test_the_mouse_reads_rows_pans_zooms_and_scrubs(qtbot: QtBot, show: Show) -> None:
    window = show(made_runs.drawn())
    session, widget = window.session, window.plots.panels["loss"]
    session.select(1)
    row = session.cursor + 100
    qtbot.mouseMove(widget, QPoint(round(widget.across.pixel(row)), 90))
    assert session.hovered is not None
    assert abs(session.hovered - row) <= 1
    first, last = session.range
    middle = QPoint(widget.width() // 2 + 150, 90)
    drag(qtbot, widget, middle, -100, Qt.KeyboardModifier.ShiftModifier)
    assert session.range[0] > first
    assert session.range[1] - session.range[0] == pytest.approx(last - first)
    ends = [widget.across.position(middle.x() + each) for each in (0, 100)]
    drag(qtbot, widget, middle, 100)
    assert session.range == pytest.approx(ends)
    qtbot.keyClick(window, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    assert session.range[1] - session.range[0] == pytest.approx(last - first)
    qtbot.keyClick(window, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
    assert session.range == pytest.approx(ends)
    session.select(1)

    cursor = session.cursor
    on_cursor = QPoint(round(widget.across.pixel(cursor)), 90)
    drag(qtbot, widget, on_cursor, 60)
    assert session.cursor > cursor + 20

    qtbot.mouseDClick(widget, Qt.MouseButton.LeftButton, pos=middle)
    assert session.range[0] < 0
    assert session.range[1] > 12_479
    window.zoom(0.5)
    assert session.range[1] - session.range[0] == pytest.approx(12_480 / 2, rel=0.02)
    qtbot.keyClick(window, Qt.Key.Key_0)
    assert session.range[1] - session.range[0] > 12_480


def test_jump_to_a_step_that_is_there_and_to_one_that_is_not(qtbot: QtBot, show: Show) -> None:
    window = show(made_runs.drawn())
    field = window.header.findChild(QLineEdit)
    assert field is not None
    qtbot.keyClick(window, Qt.Key.Key_J)
    assert field.hasFocus()
    qtbot.keyClicks(field, "777")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert window.session.cursor == 777
    assert not field.hasFocus()
    qtbot.keyClick(window, Qt.Key.Key_Right)
    assert window.session.cursor == 778
    window.session.jump(99_999)
    assert window.session.cursor == 12_479
    assert "No step 99,999" in window.foot.text


def bad_inputs(at: Path) -> dict[str, Path]:
    empty = at / "empty"
    empty.mkdir()
    foreign = at / "notes.txt"
    foreign.write_text("loss 2.1")
    newer = at / "newer"
    shutil.copytree(SAMPLES / "healthy", newer)
    manifest = newer / "run.json"
    manifest.write_text(manifest.read_text().replace('"schema_version": 1', '"schema_version": 99'))
    cut = at / "cut"
    shutil.copytree(SAMPLES / "healthy", cut)
    part = next((cut / "steps").rglob("*.parquet"))
    part.write_bytes(part.read_bytes()[:100])
    return {"missing": at / "nowhere", "empty": empty, "foreign": foreign, "newer": newer, "cut": cut}


@pytest.mark.parametrize("kind", ["missing", "empty", "foreign", "newer", "cut"])
def test_bad_input_shows_a_message_in_place_and_loses_nothing(
    qtbot: QtBot, open_sample: Open, tmp_path: Path, kind: str
) -> None:
    window = open_sample("amp_clock_drift")
    path = bad_inputs(tmp_path)[kind]
    window.session.opener.open(str(path))
    qtbot.waitUntil(lambda: window.session.opener.failure is not None)
    assert window.notice.isVisible()
    assert str(path) in window.notice.text
    assert "\n" in window.notice.text
    assert not window.findChildren(QFileDialog)
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not window.notice.isVisible()
    assert window.session.cursor == 1


def test_a_fault_of_our_own_is_told_and_logged(
    qtbot: QtBot, window: Window, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("spikeview.ui.opening.diagnose", lambda *_: 1 / 0)
    window.session.opener.open(str(SAMPLES / "healthy"))
    qtbot.waitUntil(lambda: window.session.opener.failure is not None)
    assert "ZeroDivisionError" in window.notice.text
    assert "ZeroDivisionError" in caplog.text
    caplog.clear()


def test_a_later_open_overtakes_an_earlier_one(qtbot: QtBot, window: Window) -> None:
    window.session.opener.open(str(SAMPLES / "update_against_gradient"))
    window.session.opener.open(str(SAMPLES / "amp_clock_drift"))
    qtbot.waitUntil(lambda: window.session.opener.task is None)
    window.session.close()
    assert window.session.run.name == "amp_clock_drift"


@pytest.mark.parametrize("suffix", ["html", "md"])
def test_export_writes_the_report(qtbot: QtBot, open_sample: Open, tmp_path: Path, suffix: str) -> None:
    window = open_sample("amp_clock_drift")
    qtbot.keyClick(window, Qt.Key.Key_E)
    dialog = window.findChild(QFileDialog)
    assert dialog is not None
    assert dialog.selectedFiles()[0].endswith("amp_clock_drift-step-2.html")
    target = tmp_path / f"incident.{suffix}"
    with qtbot.waitSignal(window.session.exporting.written, timeout=30_000):
        dialog.fileSelected.emit(str(target))
    dialog.close()
    assert "amp_clock_drift" in target.read_text(encoding="utf-8")
    assert window.foot.text == f"Report written: {target}"


def test_a_report_that_cannot_be_written_is_told(
    qtbot: QtBot, open_sample: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    window = open_sample("amp_clock_drift")
    window.session.exporting.write(tmp_path / "no" / "such" / "place.html")
    qtbot.waitUntil(lambda: window.session.exporting.task is None, timeout=30_000)
    assert "not written" in window.foot.text
    caplog.clear()


def test_the_theme_switches_and_stays_readable(qtbot: QtBot, open_sample: Open) -> None:
    window = open_sample("amp_clock_drift")
    dark = window.grab().toImage()
    qtbot.keyClick(window, Qt.Key.Key_T)
    assert window.session.theme.name == "light"
    light = window.grab().toImage()
    for point in (QPoint(700, 60), QPoint(20, 700), QPoint(1055, 870)):
        assert dark.pixelColor(point).lightness() < 60
        assert light.pixelColor(point).lightness() > 220


def test_the_empty_window_says_what_to_do_and_offers_recent_runs(
    qtbot: QtBot, open_sample: Open, ending: Ending
) -> None:
    window = open_sample("healthy")
    window.remember_run()
    assert any("No incident" in label.text() for label in window.summary.findChildren(QLabel))
    window.close()
    again = ending(Window())
    assert "Drop a run directory here" in again.notice.text
    offered = [
        button for button in again.notice.findChildren(type(again.notice.open_button)) if button.property("path")
    ]
    assert [button.property("path") for button in offered] == [str(SAMPLES / "healthy")]
    with qtbot.waitSignal(again.session.opened):
        offered[0].click()


def test_a_dropped_directory_is_opened(qtbot: QtBot, window: Window) -> None:
    dropped = QMimeData()
    dropped.setUrls([QUrl.fromLocalFile(str(SAMPLES / "fp16_overflow"))])
    no_modifier = Qt.KeyboardModifier.NoModifier
    event = QDropEvent(QPointF(300, 300), Qt.DropAction.CopyAction, dropped, Qt.MouseButton.LeftButton, no_modifier)
    with qtbot.waitSignal(window.session.opened):
        window.dropEvent(event)
    assert window.session.run.name == "fp16_overflow"


@pytest.mark.parametrize("key", [Qt.Key.Key_Question, Qt.Key.Key_F1])
def test_all_keys_are_told(qtbot: QtBot, open_sample: Open, key: Qt.Key) -> None:
    window = open_sample("healthy")
    qtbot.keyClick(window, key)
    dialog = window.findChild(KeysDialog)
    assert dialog is not None
    dialog.activateWindow()
    qtbot.waitUntil(dialog.isActiveWindow)
    texts = [label.text() for label in dialog.findChildren(QLabel)]
    assert "Next incident" in texts
    assert "Shift+Right" in texts
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


def test_each_optimizer_of_a_run_can_be_shown(qtbot: QtBot, show: Show) -> None:
    rows = np.repeat(np.arange(60), 2)
    columns = {
        "row": rows,
        "step": rows,
        "optimizer": pa.array(["generator", "critic"] * 60),
        "loss": np.ones(120),
        "grad_norm": np.tile([2.0, 7.0], 60),
        "attempted": np.ones(120, bool),
        "executed": np.ones(120, bool),
    }
    window = show(diagnose(made_runs.run_of(columns)))
    chooser = window.header.findChild(QComboBox)
    assert chooser is not None
    assert chooser.isVisible()
    assert inspected(window)["pre-clip norm"] == "2"
    chooser.setFocus()
    qtbot.keyClick(chooser, Qt.Key.Key_Down)
    assert window.session.view.optimizer == "critic"
    assert inspected(window)["pre-clip norm"] == "7"
    assert len(window.session.run) == 60


def test_closing_while_a_run_is_being_opened_leaves_no_thread(ending: Ending) -> None:
    window = ending(Window())
    window.show()
    window.session.opener.open(str(SAMPLES / "update_against_gradient"))
    task = window.session.opener.task
    assert task is not None
    window.close()
    assert task.isFinished()


ALT, CONTROL, NONE = (
    Qt.KeyboardModifier.AltModifier,
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.NoModifier,
)


@pytest.mark.parametrize(
    ("key", "modifier", "why"),
    [
        (Qt.Key.Key_E, ALT, "No run is compared with"),
        (Qt.Key.Key_S, ALT, "No run is compared with"),
        (Qt.Key.Key_W, CONTROL, "No run is compared with"),
        (Qt.Key.Key_Up, CONTROL, "No panel has the focus"),
        (Qt.Key.Key_Down, CONTROL, "No panel has the focus"),
        (Qt.Key.Key_H, CONTROL, "No panel has the focus"),
    ],
)
def test_a_key_that_can_do_nothing_says_why(
    qtbot: QtBot, open_sample: Open, key: Qt.Key, modifier: Qt.KeyboardModifier, why: str
) -> None:
    window = open_sample("healthy")
    before = window.plots.arrangement
    qtbot.keyClick(window, key, modifier)
    assert window.foot.text.startswith(why)
    assert window.plots.arrangement == before


def test_a_panel_that_stands_at_an_end_says_so(qtbot: QtBot, open_sample: Open) -> None:
    window = open_sample("healthy")
    first, *_, last = window.plots.arrangement.visible
    for panel_id, key, which in ((first, Qt.Key.Key_Up, "first"), (last, Qt.Key.Key_Down, "last")):
        window.plots.panels[panel_id].setFocus()
        qtbot.keyClick(window, key, CONTROL)
        assert window.foot.text == f"This is the {which} panel."


def test_the_key_of_a_greyed_panel_says_why_it_is_not_shown(qtbot: QtBot, open_sample: Open) -> None:
    window = open_sample("healthy")
    before, reasons = window.plots.arrangement, window.session.rows.reasons
    greyed = [(panel, at) for at, panel in enumerate(PANELS) if reasons[panel.id] and at < len(PANEL_KEYS)]
    assert greyed
    for panel, at in greyed:
        digit = Qt.Key(Qt.Key.Key_0 + int(PANEL_KEYS[at][-1]))
        qtbot.keyClick(window, digit, ALT if "Alt" in PANEL_KEYS[at] else NONE)
        assert window.foot.text == f"{panel.title}: {reasons[panel.id]}."
    assert window.plots.arrangement == before
    with qtbot.waitSignal(window.session.opened):
        window.session.opener.open(str(SAMPLES / "fp16_overflow"))
    back = next(panel for panel, _ in greyed if not window.session.rows.reasons[panel.id])
    digit = Qt.Key(Qt.Key.Key_0 + int(PANEL_KEYS[PANELS.index(back)][-1]))
    qtbot.keyClick(window, digit, ALT if "Alt" in PANEL_KEYS[PANELS.index(back)] else NONE)
    assert (back.id in window.plots.arrangement.shown) != (back.id in before.shown)


def test_a_comparison_is_told_without_repeating_itself(qtbot: QtBot, open_sample: Open) -> None:
    window = open_sample("healthy")
    with qtbot.waitSignal(window.session.comparison.changed):
        window.session.comparison.open(str(SAMPLES / "bf16_clipped"))
    window.session.inspect_row(0)
    overlay, beside = window.session.comparison.overlay, window.inspector._beside
    assert overlay is not None
    assert overlay.said.startswith("hardly moves. Its updates are 0.0")
    assert any(label.text().startswith("bf16_clipped, STEP ") for label in beside.findChildren(QLabel))
    told = [label for label in beside.findChildren(QLabel) if "of the other run" in label.accessibleName()]
    assert len(told) == 7 and all(label.isVisible() for label in told)
    window.session.to_end(first=False)
    assert not any(label.isVisible() for label in told)
    assert any(label.text() == "bf16_clipped, NO ROW THERE" for label in beside.findChildren(QLabel))


@pytest.mark.parametrize(
    ("ours", "told"),
    [(70.0, "+68 (35 times)"), (-40.0, "-42 (-20 times)"), (19.0, "+17 (+850 %)"), (1.0, "-1 (-50 %)"), (2.0, "same")],
)
def test_a_large_difference_is_told_as_a_multiple(qtbot: QtBot, show: Show, ours: float, told: str) -> None:
    window = show(diagnose(made_runs.run_of({"grad_norm": np.full(40, ours)})))
    comparison = window.session.comparison
    comparison.other = opened(diagnose(made_runs.run_of({"grad_norm": np.full(40, 2.0)})))
    with qtbot.waitSignal(comparison.changed):
        comparison.use_clock("step")
    labels = {label.accessibleName(): label.text() for label in window.inspector._beside.findChildren(QLabel)}
    assert labels["difference of pre-clip norm"] == told
