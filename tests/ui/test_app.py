"""The window as a program: its picture, what it imports, and a person at a real display."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from spikeview.ui.app import snapshot
from tests.ui.conftest import SAMPLES

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
    """An X server of our own on a free display, with a window manager so that keys have a focus."""
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-screen", "0", "1440x900x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL)
    os.close(write)
    try:
        with os.fdopen(read) as told:
            display = f":{told.readline().strip()}"
        environment = {**os.environ, "DISPLAY": display}
        manager = subprocess.Popen(["openbox"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield display
        finally:
            manager.terminate()
            manager.wait()
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


def test_a_session_at_a_real_display(qtbot: QtBot, tmp_path: Path) -> None:
    """Open, scrub with keys, click a row, jump to a step, export, quit: each seen in the title or the file."""
    needs("Xvfb", "xdotool", "openbox")
    with x_server() as display:
        process = subprocess.Popen(
            [sys.executable, "-m", "spikeview", str(SAMPLES / "update_against_gradient")],
            cwd=ROOT,
            env={**os.environ, "DISPLAY": display, "QT_QPA_PLATFORM": "xcb", "XDG_CONFIG_HOME": str(tmp_path)},
            stderr=subprocess.PIPE,
            text=True,
        )
        person = Person(display, qtbot)
        try:
            person.wait(lambda: "step 122" in person.title())
            person.do("key", "Right", "Right", "Right")
            person.wait(lambda: "step 125" in person.title())
            person.do("key", "shift+Left")
            person.wait(lambda: "step 115" in person.title())
            person.do("key", "End")
            person.wait(lambda: "step 399" in person.title())
            # in the middle of the first panel: about row 200 of 400
            person.do("mousemove", "660", "160", "click", "1")
            person.wait(lambda: any(f"step {step} " in person.title() for step in range(170, 240)))
            person.do("key", "j")
            person.do("type", "77")
            person.do("key", "Return")
            person.wait(lambda: "step 77 " in person.title())
            person.do("key", "e")
            person.wait(lambda: "Export" in person.title())
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
        assert "update_against_gradient" in report.read_text(encoding="utf-8")
