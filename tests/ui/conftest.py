"""The window under test: without a display, with settings of its own, and nothing left behind."""

from __future__ import annotations

import gc
import logging
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QSettings, QThread
from pytestqt.qtbot import QtBot

from spikeview.rules.diagnosis import Diagnosis
from spikeview.ui.opening import opened
from spikeview.ui.theme import DARK
from spikeview.ui.window import Window

SAMPLES = Path(__file__).parents[2] / "sample_runs"


@pytest.fixture(autouse=True)
def settings_of_its_own(tmp_path: Path) -> None:
    QSettings.setDefaultFormat(QSettings.Format.IniFormat)
    for kind in (QSettings.Format.IniFormat, QSettings.Format.NativeFormat):
        QSettings.setPath(kind, QSettings.Scope.UserScope, str(tmp_path / "settings"))


@pytest.fixture(autouse=True)
def nothing_left_behind(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A test fails on a thread that outlives its window, and on a log line it did not take note of and clear."""
    before = set(threading.enumerate())
    yield
    # Python keeps a stand-in for every thread of Qt's that it ever met; those are asked of their window below
    left = [each for each in set(threading.enumerate()) - before if not isinstance(each, threading._DummyThread)]
    assert not left, f"threads left running: {left}"
    assert gc.isenabled(), "the collector still waits for a task"
    lines = [each for each in caplog.get_records("call") if each.levelno >= logging.WARNING]
    assert not lines, f"unexpected log lines: {lines}"


@pytest.fixture
def window(qtbot: QtBot) -> Iterator[Window]:
    made = Window(DARK)
    made.resize(1440, 900)
    qtbot.addWidget(made)
    made.show()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow)
    yield made
    made.close()
    assert not any(task.isRunning() for task in made.session.findChildren(QThread)), "a worker outlives its window"


@pytest.fixture
def open_sample(window: Window, qtbot: QtBot) -> Callable[[str], Window]:
    """Opens a sample run as a user does, and waits until it is shown."""

    def open_it(name: str) -> Window:
        with qtbot.waitSignal(window.session.opened):
            window.session.opener.open(str(SAMPLES / name))
        return window

    return open_it


@pytest.fixture
def show(window: Window) -> Callable[[Diagnosis], Window]:
    """Shows a diagnosis made by hand."""

    def show_it(diagnosis: Diagnosis) -> Window:
        window.session.show(opened(diagnosis))
        return window

    return show_it
