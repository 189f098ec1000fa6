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

from PySide6.QtCore import QEvent, QSettings, QThread
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from spikeview.rules.diagnosis import Diagnosis
from spikeview.ui.opening import opened
from spikeview.ui.theme import DARK
from spikeview.ui.window import Window

Ending = Callable[[Window], Window]
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
def ending(qtbot: QtBot) -> Iterator[Ending]:
    """Takes a window that is to be closed at the end of the test, where the test has not closed it before."""
    windows: list[Window] = []

    def takes(window: Window) -> Window:
        windows.append(window)
        return window

    yield takes
    for window in filter(isValid, windows):
        window.close()
        assert not any(task.isRunning() for task in window.session.findChildren(QThread)), (
            "a worker outlives its window"
        )
        QApplication.sendPostedEvents(window, QEvent.Type.DeferredDelete.value)
        assert not isValid(window), "a window outlives its end"


@pytest.fixture
def window(qtbot: QtBot, ending: Ending) -> Window:
    made = ending(Window(DARK))
    made.resize(1440, 900)
    made.show()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow)
    return made


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
