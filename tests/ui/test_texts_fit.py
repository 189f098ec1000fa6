"""Texts have room: on the first page and on a failure, in the header at every width, and in the foot."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from spikeview.ui.window import Window
from tests.ui.conftest import SAMPLES

Open = Callable[[str], Window]
LONG = "transformer_lm_base_lr3e-4_wd0.1_bs256_seed17_restart2_final"


@pytest.mark.parametrize("width", [860, 1440])
def test_the_first_page_and_a_failure_are_told_in_full(
    qtbot: QtBot, window: Window, tmp_path: Path, width: int
) -> None:
    def whole() -> bool:
        labels = [each for each in window.notice.findChildren(QLabel) if each.isVisible()]
        return bool(labels) and all(each.height() >= each.heightForWidth(each.width()) for each in labels)

    window.resize(width, 560)
    qtbot.waitUntil(whole)
    window.session.opener.open(str(tmp_path / ("a rather long name of a directory " * 4) / "that is not there"))
    qtbot.waitUntil(lambda: window.session.opener.failure is not None)
    qtbot.waitUntil(whole)


@pytest.mark.parametrize("width", [860, 1239, 1240, 1300, 1440])
def test_the_header_keeps_its_menus_whatever_the_names(
    qtbot: QtBot, window: Window, tmp_path: Path, width: int
) -> None:
    runs = [tmp_path / f"{LONG}_{which}" for which in "ab"]
    for run in runs:
        shutil.copytree(SAMPLES / "fp16_overflow", run)
    with qtbot.waitSignal(window.session.opened):
        window.session.opener.open(str(runs[0]))
    window.session.comparison.open(str(runs[1]))
    qtbot.waitUntil(lambda: window.session.comparison.overlay is not None)
    window.resize(width, 700)
    menus = window.header.menus
    qtbot.waitUntil(lambda: menus.width() >= menus.sizeHint().width())
    qtbot.keyClick(window, Qt.Key.Key_J)
    qtbot.waitUntil(lambda: window.header._step.hasFocus() and menus.width() >= menus.sizeHint().width())
    name = window.header._name
    qtbot.waitUntil(lambda: name.fontMetrics().horizontalAdvance(name.text()) <= name.width())


def test_what_is_asked_for_by_step_may_be_far_out_and_is_gone_after(qtbot: QtBot, open_sample: Open) -> None:
    window = open_sample("healthy")
    qtbot.keyClick(window, Qt.Key.Key_J)
    step = window.header._step
    qtbot.keyClicks(step, "3000000000")
    qtbot.keyClick(step, Qt.Key.Key_Return)
    assert window.foot.text.startswith("No step 3,000,000,000 in this run; the nearest is")
    assert step.text() == ""
    qtbot.keyClick(window, Qt.Key.Key_J)
    qtbot.keyClicks(step, "12")
    window.plots.setFocus()
    assert step.text() == ""


def test_what_was_said_of_one_run_is_not_said_of_the_next(qtbot: QtBot, open_sample: Open) -> None:
    window = open_sample("healthy")
    qtbot.keyClick(window, Qt.Key.Key_N)
    assert window.foot.text == "No incident in this run."
    open_sample("amp_clock_drift")
    assert "No incident" not in window.foot.text
    window.resize(860, 560)
    window.session.told.emit("A message that is far longer than there is room for: " + "word " * 60)
    told = window.foot._told
    assert told.text().endswith("…") and told.fontMetrics().horizontalAdvance(told.text()) <= told.width()
    assert window.foot.text.endswith("word ")
