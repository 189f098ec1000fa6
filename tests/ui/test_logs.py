"""Logs of other trainers in the window: which column is which, which of several runs, and a directory of all sorts."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from spikeview.commands.view import view
from spikeview.importers import Asked
from spikeview.ui import app, recent
from spikeview.ui.log_columns import LogColumns
from spikeview.ui.theme import DARK, LIGHT
from spikeview.ui.window import Window
from tests.ui.conftest import SAMPLES

# said by the plugin that stands in for a display, of every dialog
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")

ROWS = 200
LOSS = 2 + np.random.default_rng(0).normal(size=ROWS) * 0.01


def csv(path: Path, *heads: str) -> Path:
    """Steps of ten, then a loss that leaves at the 150th row, then half of it, under these heads."""
    losses = np.where(np.arange(ROWS) == 150, 9.0, LOSS)
    lines = [f"{row * 10},{loss},{loss / 2}" for row, loss in enumerate(losses)]
    path.write_text("\n".join([",".join(heads), *lines]))
    return path


def facts(window: Window) -> list[str]:
    return [label.text() for label in window.summary.findChildren(QLabel)]


def choose(window: Window, column: str, name: str) -> None:
    """In the dialog that is open."""
    dialog = window.findChild(LogColumns)
    assert dialog is not None
    box = dialog.boxes[column]
    box.setCurrentIndex(box.findData(name))
    dialog.accept()


def test_what_was_guessed_is_shown_and_another_column_is_taken(qtbot: QtBot, window: Window, tmp_path: Path) -> None:
    path = csv(tmp_path / "log.csv", "iter", "train/loss", "aux/loss")
    with qtbot.waitSignal(window.session.opened):
        window.session.opener.open(str(path))
    assert "train/loss" in facts(window)
    assert window.session.run.values("loss")[3] == LOSS[3]
    qtbot.keyClick(window, Qt.Key.Key_L)
    with qtbot.waitSignal(window.session.opened):
        choose(window, "loss", "aux/loss")
    assert "aux/loss" in facts(window)
    assert window.session.run.values("loss")[3] == LOSS[3] / 2


def test_a_log_that_nobody_could_guess_is_opened_by_naming_its_loss(
    qtbot: QtBot, window: Window, tmp_path: Path
) -> None:
    path = csv(tmp_path / "log.csv", "iter", "objective", "more")
    window.session.opener.open(str(path))
    qtbot.waitUntil(lambda: window.session.opener.failure is not None)
    assert window.notice.columns_button.isVisible()
    qtbot.mouseClick(window.notice.columns_button, Qt.MouseButton.LeftButton)
    with qtbot.waitSignal(window.session.opened):
        choose(window, "loss", "objective")
    assert window.session.run.values("step")[:3].tolist() == [0, 10, 20]
    assert len(window.session.incidents) == 1


def test_of_a_recorded_run_nothing_is_guessed(qtbot: QtBot, window: Window) -> None:
    with qtbot.waitSignal(window.session.opened):
        window.session.opener.open(str(SAMPLES / "amp_clock_drift"))
    qtbot.keyClick(window, Qt.Key.Key_L)
    assert window.findChild(LogColumns) is None
    assert "nothing of its columns is guessed" in window.foot.text


def test_the_command_line_says_which_column_and_which_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(csv(tmp_path / "log.csv", "iter", "objective", "more"))
    seen = []
    monkeypatch.setattr(app, "view", lambda run, asked: seen.append((run, asked)) or 0)
    done = CliRunner().invoke(view, [path, "--map", "loss=objective", "--run", "b"], standalone_mode=False)
    assert done.return_value == 0, done.exception
    assert seen == [(path, Asked(mapping={"loss": "objective"}, run="b"))]


def test_the_runs_of_one_file_are_a_table_to_choose_from(qtbot: QtBot, window: Window, tmp_path: Path) -> None:
    path = tmp_path / "chart.csv"
    lines = [f"{row},{loss},{loss + 1}" for row, loss in enumerate(LOSS.tolist())]
    path.write_text("\n".join(['"Step","gpt - train/loss","bert - train/loss"', *lines]))
    window.session.opener.open(str(path))
    qtbot.waitUntil(lambda: window.session.opener.listing is not None)
    table = window.browser.table
    assert [table.item(line, 0).text() for line in range(2)] == ["gpt", "bert"]
    qtbot.waitUntil(lambda: table.item(1, 3).text() == "no incident", timeout=30_000)
    table.setCurrentCell(1, 0)
    with qtbot.waitSignal(window.session.opened):
        qtbot.keyClick(table, Qt.Key.Key_Return)
    assert window.session.run.values("loss")[3] == LOSS[3] + 1
    qtbot.keyClick(window, Qt.Key.Key_Backspace)
    assert window.browser.isVisible()
    assert [table.item(line, 3).text() for line in range(2)] == ["no incident"] * 2
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert window.plots.isVisible()
    window.remember_run()
    assert recent.recent() == [str(path)]


def test_a_directory_lists_runs_and_logs_and_nothing_else(qtbot: QtBot, window: Window, tmp_path: Path) -> None:
    csv(tmp_path / "log.csv", "iter", "train/loss", "aux")
    csv(tmp_path / "odd.csv", "iter", "objective", "more")
    shutil.copytree(SAMPLES / "amp_clock_drift", tmp_path / "runs" / "drift")
    (tmp_path / "notes.txt").write_text("hello")
    window.session.opener.open(str(tmp_path))
    qtbot.waitUntil(lambda: window.session.opener.listing is not None)
    table = window.browser.table
    assert [table.item(line, 0).text() for line in range(table.rowCount())] == ["log.csv", "odd.csv", "runs/drift"]
    qtbot.waitUntil(lambda: table.item(2, 3).text() != "", timeout=30_000)
    told = [[table.item(line, column).text() for column in (1, 2, 3)] for line in range(3)]
    assert told[0][:2] == ["200", "CSV"]
    assert told[0][2].startswith("step 1,500 loss +")
    assert told[1][1] == "cannot be read" and "name one with --map" in told[1][2]
    assert told[2] == ["6", "closed", "step 2 pre-clip norm Inf"]
    table.setCurrentCell(1, 0)
    qtbot.keyClick(table, Qt.Key.Key_Return)
    qtbot.waitUntil(window.notice.columns_button.isVisible)


def test_the_list_takes_the_colours_of_another_theme(qtbot: QtBot, window: Window, tmp_path: Path) -> None:
    csv(tmp_path / "odd.csv", "iter", "objective", "more")
    csv(tmp_path / "log.csv", "iter", "train/loss", "aux")
    window.session.opener.open(str(tmp_path))
    table = window.browser.table
    qtbot.waitUntil(lambda: table.rowCount() == 2 and table.item(1, 2).text() == "cannot be read", timeout=30_000)
    table.setCurrentCell(1, 0)
    for theme in (LIGHT, DARK):
        qtbot.keyClick(table, Qt.Key.Key_T)
        assert window.session.theme == theme
        colours = [table.item(1, column).foreground().color() for column in (0, 3)]
        assert colours == [theme["text"], theme["bad"]]
        assert (table.item(0, 1).text(), table.currentRow()) == ("200", 1)


# a file that is being opened when the search is given up is closed by the collector, which says so
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_looking_through_a_directory_is_given_up_with_esc(qtbot: QtBot, window: Window, tmp_path: Path) -> None:
    for number in range(30):
        csv(tmp_path / f"{number}.csv", "iter", "loss", "aux")
    window.session.opener.open(str(tmp_path))
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert window.session.opener.task is None
    assert window.notice.isVisible()


def test_a_place_of_several_runs_is_not_compared_with_one_of_them(
    qtbot: QtBot, open_sample: Callable[[str], Window]
) -> None:
    window = open_sample("healthy")
    window.session.comparison.open(str(SAMPLES))
    qtbot.waitUntil(lambda: "holds 8 runs" in window.foot.text, timeout=30_000)
    assert window.session.comparison.other is None
