"""Work that is given up: it ends at its next checkpoint, says nothing more, and leaves nothing half done behind."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from threading import Event

import numpy as np
import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from spikeview.cancelling import Cancelled, checkpoint
from spikeview.rules.diagnosis import diagnose
from spikeview.ui.task import FRAME_MS, Tell, Work
from spikeview.ui.window import Window
from tests.ui import made_runs
from tests.ui.conftest import SAMPLES

GIVEN_UP = f"""
import sys
from PySide6.QtCore import QEventLoop
from PySide6.QtWidgets import QApplication
app = QApplication([])
from spikeview.ui.theme import DARK
from spikeview.ui.window import Window

window, loop = Window(DARK), QEventLoop()
opener = window.session.opener
for asked in range(1, 13):  # given up ever later, the first times while modules are being imported
    opener.open({str(SAMPLES / "update_against_gradient")!r})
    opener.task.wait(asked * 50)
    opener.cancel()
window.session.opened.connect(loop.quit)
opener.open({str(SAMPLES / "update_against_gradient")!r})
window.session.status_changed.connect(lambda: opener.failure and loop.quit())
loop.exec()
print(opener.failure or len(window.session.incidents))
window.close()
"""


def give_up(work: Callable[[Tell], object]) -> list[object]:
    """Begin some work, give it up before it goes on, and wait for its end; returns all that it said."""
    began, go_on, said = Event(), Event(), []

    def waits(tell: Tell) -> object:
        began.set()
        go_on.wait(10)
        return work(tell)

    works = Work()
    task = works.start(waits, said.append, said.append, said.append)
    assert began.wait(10)
    task.cancel()
    go_on.set()
    works.close()
    QApplication.processEvents()
    return said


def test_work_that_is_given_up_says_nothing_and_ends_at_its_next_checkpoint(qtbot: QtBot) -> None:
    passed = []

    def work(tell: Tell) -> str:
        try:
            checkpoint()
        except Cancelled:
            passed.append("ended")
            raise
        return "done"

    assert give_up(work) == []
    assert passed == ["ended"]


@pytest.mark.parametrize("tells", [True, False])
def test_telling_is_a_checkpoint_and_a_late_answer_is_dropped(qtbot: QtBot, tells: bool) -> None:
    passed = []

    def work(tell: Tell) -> str:
        if tells:
            tell("half")
        passed.append("to the end")
        return "done"

    assert give_up(work) == []
    assert passed == ([] if tells else ["to the end"])


def test_a_diagnosis_passes_checkpoints_and_outside_of_a_task_they_end_nothing(qtbot: QtBot) -> None:
    """Given up while it runs, of a run with nothing read yet: it does not come to its end."""
    run = made_runs.run_of({"loss": np.linspace(3.0, 2.0, 5000), "grad_norm": np.linspace(2.0, 1.0, 5000)})
    assert diagnose(run).judged_rows > 4000
    ended = []

    def work(tell: Tell) -> None:
        try:
            diagnose(run)
        finally:
            ended.append(sys.exc_info()[0])

    assert give_up(work) == []
    assert ended == [Cancelled]


def test_what_is_in_a_cycle_ends_in_the_thread_of_the_window(qtbot: QtBot) -> None:
    """A widget among it would end in a worker otherwise, and Qt with it."""
    ended: list[int] = []

    class Ends:
        def __init__(self) -> None:
            self.myself = self

        def __del__(self) -> None:
            ended.append(threading.get_ident())

    gc.collect()
    assert gc.isenabled()
    Ends()
    works = Work()

    def work(tell: Tell) -> list[list[int]]:
        return [[number] for number in range(200_000)]

    task = works.start(work, lambda _: None, lambda _: None)
    assert task.wait(30_000)
    qtbot.waitUntil(gc.isenabled)
    gc.collect()
    assert ended == [threading.get_ident()]


def test_a_window_that_was_closed_starts_nothing_more(window: Window) -> None:
    """A timer of its own may still fire; a thread that ran when the window is deleted would end the process."""
    window.close()
    window.session.opener.open(str(SAMPLES / "healthy"))
    assert window.session.opener.task is not None
    assert not window.session.opener.task.isRunning()


def test_opening_given_up_at_any_moment_leaves_the_next_opening_right() -> None:
    """An import that was under way is whole afterwards: nothing is raised from outside into a thread."""
    done = subprocess.run(
        [sys.executable, "-c", GIVEN_UP],
        cwd=SAMPLES.parent,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("1", "")


def test_two_pictures_are_taken_in_one_process_one_of_them_of_a_directory(tmp_path: object) -> None:
    """Windows that are done with end in the thread of the window, while the next one's workers run."""
    script = (
        "from spikeview.ui.app import snapshot\n"
        f"for run in ({str(SAMPLES / 'amp_clock_drift')!r}, {str(SAMPLES)!r}, {str(SAMPLES / 'healthy')!r}):\n"
        f"    snapshot(run, {str(tmp_path)!r} + '/window.png')\n"
        "print('done')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=SAMPLES.parent,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("done", "")


def test_work_after_a_frame_begins_by_itself_and_never_in_a_closed_window(qtbot: QtBot) -> None:
    began: list[str] = []
    works = Work()
    task = works.start(lambda tell: began.append("first"), lambda _: None, lambda _: None, after_frame=True)
    assert not task.isRunning()
    qtbot.waitUntil(lambda: bool(began))
    late = works.start(lambda tell: began.append("late"), lambda _: None, lambda _: None, after_frame=True)
    works.close()
    passed: list[bool] = []
    QTimer.singleShot(FRAME_MS + 1, lambda: passed.append(True))  # comes after the other
    qtbot.waitUntil(lambda: bool(passed))
    assert not late.isRunning() and began == ["first"]
