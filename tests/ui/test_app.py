"""The window as a program: its picture, what it imports, and a person at a real display."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from recorder.store import RunWriter
from spikeview.ui.app import snapshot, window_on
from spikeview.ui.layout import Layout
from spikeview.ui.theme import DARK
from spikeview.ui.window import Window
from tests.ui.conftest import SAMPLES, Ending

ROOT = SAMPLES.parent


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_a_snapshot_shows_the_run(qtbot: QtBot, tmp_path: Path, theme: str) -> None:
    target = tmp_path / "window.png"
    snapshot(str(SAMPLES / "amp_clock_drift"), target, theme=theme, size=(1280, 800))  # type: ignore[arg-type]
    picture = QImage(str(target))
    assert (picture.width(), picture.height()) == (1280, 800)
    colours = {picture.pixelColor(x, y).name() for x in range(250, 880, 3) for y in range(60, 690, 3)}
    assert len(colours) > 8


def test_a_snapshot_of_no_run_says_why(qtbot: QtBot, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nowhere"):
        snapshot(str(tmp_path / "nowhere"), tmp_path / "window.png")


def test_a_run_is_read_from_before_there_is_a_window(qtbot: QtBot, ending: Ending) -> None:
    layout = Layout().showing("loss_scale", True)
    window = ending(window_on(str(SAMPLES / "amp_clock_drift"), layout, DARK))
    assert window.session.opener.waiting
    window.show()
    qtbot.waitUntil(lambda: window.session.shown is not None)
    assert window.session.series.wanted == window.plots.arrangement.visible
    assert window.session.series.of("loss_scale") is not None
    assert window.session.incidents
    assert window.pages.currentIndex() == 1


def test_what_cannot_be_read_is_told_of_in_the_window_that_comes_after(
    qtbot: QtBot, ending: Ending, tmp_path: Path
) -> None:
    window = ending(window_on(str(tmp_path / "nowhere"), Layout(), DARK))
    window.show()
    qtbot.waitUntil(lambda: window.session.opener.failure is not None)
    assert window.pages.currentWidget() is window.notice


def test_a_window_is_destroyed_by_qt_once_it_is_closed_and_never_by_the_collector(qtbot: QtBot) -> None:
    """The collector may come by within an event of one of its widgets, and Qt would come back to what is no more."""
    window = Window(DARK)
    window.show()
    panel, held = window.plots.panels["loss"], weakref.ref(window)
    del window
    gc.collect()
    assert isValid(panel)
    panel.window().close()
    gc.collect()
    assert isValid(panel)
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    assert not isValid(panel)
    del panel
    gc.collect()
    assert held() is None


def test_torch_is_never_imported(tmp_path: Path) -> None:
    """Not by opening a run, nor by what the window shows of it; in a process of its own, for this one may have it."""
    script = (
        "import sys; from spikeview.ui.app import snapshot; "
        f"snapshot({str(SAMPLES / 'amp_clock_drift')!r}, {str(tmp_path / 'window.png')!r}); "
        "print(sorted({'torch', 'matplotlib', 'jinja2', 'pandas'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "[]", done.stderr
    assert done.returncode == 0


def needs(*programs: str) -> None:
    """Skips, with the reason, where the machine lacks a program."""
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)} for a real display")


@contextmanager
def x_server() -> Iterator[str]:
    """An X server of our own on a free display, with a window manager so that keys have a focus.

    The window manager runs before anyone opens a window: one that it finds there already gets no focus, and no keys.
    """
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-screen", "0", "1440x900x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL)
    os.close(write)
    try:
        with os.fdopen(read) as told:
            display = f":{told.readline().strip()}"
        environment = {**os.environ, "DISPLAY": display}
        command = ["openbox", "--sm-disable", "--startup", "echo manages"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as manager:
            assert manager.stdout is not None
            assert b"manages\n" in manager.stdout, "the window manager ended at once"
            try:
                yield display
            finally:
                manager.terminate()
    finally:
        server.terminate()
        server.wait()


class Person:
    """Someone at the keyboard of a display."""

    def __init__(self, display: str, qtbot: QtBot) -> None:
        self._environment = {**os.environ, "DISPLAY": display}
        self._qtbot = qtbot

    def do(self, *arguments: str) -> str:
        done = subprocess.run(
            ["xdotool", *arguments], env=self._environment, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    def title(self) -> str:
        return self.do("getactivewindow", "getwindowname")

    def wait(self, holds: Callable[[], bool]) -> None:
        self._qtbot.waitUntil(holds, timeout=60_000)

    def keep(self, name: str) -> None:
        """A picture of the whole screen, to be looked at."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        environment = {**self._environment, "QT_QPA_PLATFORM": "xcb"}
        taker = [sys.executable, "-c", SCREEN, str(PICTURES / f"{name}.png")]
        subprocess.run(taker, env=environment, capture_output=True, check=True)


PICTURES = ROOT / "build" / "screenshots"

SCREEN = """
import sys
from PySide6.QtGui import QGuiApplication
app = QGuiApplication(sys.argv)
sys.exit(not app.primaryScreen().grabWindow(0).save(sys.argv[1]))
"""

CLIPBOARD = """
import sys
from PySide6.QtGui import QGuiApplication
app = QGuiApplication(sys.argv)
print(app.clipboard().text())
"""


def two_spikes(path: Path) -> Path:
    """A run of 400 rows whose loss leaves at row 150 and at row 300."""
    writer, noise = RunWriter.create(path, {"device": "cpu"}), np.random.default_rng(1).normal(size=400) * 0.01
    for row in range(400):
        counts = {"attempted": True, "executed": True, "attempted_n": row + 1, "executed_n": row + 1}
        loss = 40.0 if row in (150, 300) else 2.0 + noise[row]
        writer.append({"row": row, "step": row, "optimizer": "adam", "loss": loss, "grad_norm": 0.5} | counts)
    writer.close()
    return path


def test_a_session_at_a_real_display(qtbot: QtBot, tmp_path: Path) -> None:
    """To the second incident, three rows back, read, look about with the mouse, export, quit: as a person would."""
    needs("Xvfb", "xdotool", "openbox")
    run = two_spikes(tmp_path / "two_spikes")
    with x_server() as display:
        environment = {**os.environ, "DISPLAY": display, "QT_QPA_PLATFORM": "xcb", "XDG_CONFIG_HOME": str(tmp_path)}
        process = subprocess.Popen(
            [sys.executable, "-m", "spikeview", str(run)], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
        )
        person = Person(display, qtbot)
        try:
            person.wait(lambda: "step 149 " in person.title())
            person.do("key", "n")
            person.wait(lambda: "step 299 " in person.title())
            person.keep("second_incident")
            person.do("key", "Left", "Left", "Left")
            person.wait(lambda: "step 296 " in person.title())
            person.do("key", "ctrl+c")
            reader = [sys.executable, "-c", CLIPBOARD]
            read = subprocess.run(reader, env=environment, capture_output=True, text=True, check=True).stdout
            assert [line.split(" | ")[0] for line in read.splitlines()[2:9]] == [f"| {row}" for row in range(293, 300)]
            # in the middle of the first panel: about row 200 of 400
            person.do("mousemove", "660", "160", "click", "1")
            person.wait(lambda: any(f"step {step} " in person.title() for step in range(170, 240)))
            person.do("key", "j")
            person.do("type", "77")
            person.do("key", "Return")
            person.wait(lambda: "step 77 " in person.title())
            person.keep("jumped")
            person.do("key", "e")
            person.wait(lambda: "Export" in person.title())
            person.keep("export")
            report = tmp_path / "incident.md"
            person.do("key", "ctrl+a")
            person.do("type", str(report))
            person.do("key", "Return")
            person.wait(report.exists)
            person.wait(lambda: "step 77 " in person.title())
            person.do("key", "ctrl+q")
            process.wait(timeout=60)
        finally:
            process.kill()
            _, errors = process.communicate()
        assert errors == ""
        assert process.returncode == 0
        assert "two_spikes" in report.read_text(encoding="utf-8")
