"""The report from the window: how far it is, given up, not over a file unasked, remembered, opened, and failed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QTimer, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QApplication, QFileDialog, QMessageBox
from pytestqt.qtbot import QtBot

from spikeview.report import export
from spikeview.ui.window import Window

# said by the plugin that stands in for a display, of every dialog
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")

Open = Callable[[str], Window]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Reports wait in the middle of their writing until this is set."""
    go_on, write = threading.Event(), export.to_markdown

    def slow(diagnosis: object, said: object, told: Callable[[str], None]) -> str:
        while not go_on.wait(0.01):
            told("halfway")
        return write(diagnosis, said, told)  # type: ignore[arg-type]

    monkeypatch.setitem(export.FACES, ".md", export.Face(slow, 3))
    return go_on


def ask(qtbot: QtBot, window: Window, target: Path) -> QFileDialog:
    """The dialog, with a place typed into it."""
    qtbot.keyClick(window, Qt.Key.Key_E)
    dialog = window.findChild(QFileDialog)
    assert dialog is not None
    dialog.setDirectory(str(target.parent))
    dialog.selectFile(target.name)
    return dialog


def written(qtbot: QtBot, window: Window, target: Path) -> None:
    with qtbot.waitSignal(window.session.exporting.written, timeout=30_000):
        ask(qtbot, window, target).accept()
    qtbot.waitUntil(lambda: window.findChild(QFileDialog) is None)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)


def answer(button: QMessageBox.StandardButton) -> list[str]:
    """Press a button of the question that is to come, and note what it asked."""
    asked: list[str] = []

    def press() -> None:
        box = QApplication.activeModalWidget()
        if not isinstance(box, QMessageBox):
            QTimer.singleShot(5, press)
            return
        asked.append(box.text())
        box.button(button).click()

    QTimer.singleShot(0, press)
    return asked


def test_progress_is_told_and_the_report_can_be_given_up(
    qtbot: QtBot, open_sample: Open, tmp_path: Path, held: threading.Event
) -> None:
    window = open_sample("amp_clock_drift")
    bar = window.export_bar
    assert not bar.isVisible()
    window.session.exporting.write(tmp_path / "incident.md")
    qtbot.waitUntil(lambda: "halfway" in bar.text)
    assert bar.isVisible() and bar.cancel.isVisible() and not bar.open.isVisible()
    task = window.session.exporting.task
    assert task is not None
    qtbot.mouseClick(bar.cancel, Qt.MouseButton.LeftButton)
    assert not bar.isVisible()
    assert "cancelled" in window.foot.text
    qtbot.waitUntil(lambda: task not in window.session.work.children())
    assert list(tmp_path.glob("*.md")) == list(tmp_path.glob(".*.part")) == []


def test_the_window_answers_while_a_report_is_written(
    qtbot: QtBot, open_sample: Open, tmp_path: Path, held: threading.Event
) -> None:
    window = open_sample("amp_clock_drift")
    window.session.exporting.write(tmp_path / "incident.md")
    qtbot.waitUntil(lambda: "halfway" in window.export_bar.text)
    qtbot.keyClick(window, Qt.Key.Key_Right)
    assert window.session.cursor == 2
    with qtbot.waitSignal(window.session.exporting.written, timeout=30_000):
        held.set()
    assert (tmp_path / "incident.md").exists()


def test_a_report_ends_with_open_and_show_in_folder(
    qtbot: QtBot, open_sample: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[QUrl] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: bool(opened.append(url)))
    window, target = open_sample("amp_clock_drift"), tmp_path / "incident.md"
    written(qtbot, window, target)
    bar = window.export_bar
    assert bar.text == f"Report written: {target}"
    for button in (bar.open, bar.show_folder):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert [url.toLocalFile() for url in opened] == [str(target), str(tmp_path)]
    assert "Nothing here opens" in window.foot.text
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not bar.isVisible()


def test_a_file_that_is_there_is_not_written_over_unasked(qtbot: QtBot, open_sample: Open, tmp_path: Path) -> None:
    window, target = open_sample("amp_clock_drift"), tmp_path / "incident.md"
    target.write_text("mine")
    dialog = ask(qtbot, window, target)
    asked = answer(QMessageBox.StandardButton.No)
    dialog.accept()
    assert "incident.md already exists" in asked[0]
    assert target.read_text() == "mine"
    assert window.session.exporting.task is None
    answer(QMessageBox.StandardButton.Yes)
    with qtbot.waitSignal(window.session.exporting.written, timeout=30_000):
        dialog.accept()
    assert "amp_clock_drift" in target.read_text(encoding="utf-8")


def test_the_folder_of_the_last_report_is_where_the_next_one_begins(
    qtbot: QtBot, open_sample: Open, tmp_path: Path
) -> None:
    window = open_sample("amp_clock_drift")
    (tmp_path / "reports").mkdir()
    written(qtbot, window, tmp_path / "reports" / "incident.md")
    qtbot.keyClick(window, Qt.Key.Key_E)
    dialog = window.findChild(QFileDialog)
    assert dialog is not None
    assert dialog.directory().path() == str(tmp_path / "reports")
    dialog.selectNameFilter("JSON (*.json)")
    dialog.filterSelected.emit("JSON (*.json)")
    assert dialog.selectedFiles() == [str(tmp_path / "reports" / "amp_clock_drift-step-2.json")]
    dialog.close()


@pytest.mark.parametrize("why", ["no such folder", "within the run", "a fault of our own"])
def test_a_failed_report_says_why_and_leaves_no_half_file(
    qtbot: QtBot,
    open_sample: Open,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    why: str,
) -> None:
    window, target = open_sample("amp_clock_drift"), tmp_path / "incident.md"
    said = "ZeroDivisionError"
    if why == "no such folder":
        target, said = tmp_path / "no" / "incident.md", "No such file or directory. Choose another place."
    elif why == "within the run":
        target, said = Path(window.session.run.path) / "incident.md", "lies within the run"
    else:
        monkeypatch.setitem(export.FACES, ".md", export.Face(lambda *_: str(1 / 0), 3))
        said = "division by zero"
    window.session.exporting.write(target)
    bar = window.export_bar
    qtbot.waitUntil(lambda: bar.text.startswith("No report: "), timeout=30_000)
    assert said in bar.text
    assert bar.again.isVisible() and not bar.open.isVisible()
    assert not target.exists()
    assert list(tmp_path.glob(".*.part")) == []
    assert ("ZeroDivisionError" in caplog.text) == (why == "a fault of our own")
    caplog.clear()
    qtbot.mouseClick(bar.again, Qt.MouseButton.LeftButton)
    dialog = window.findChild(QFileDialog)
    assert dialog is not None
    dialog.close()
