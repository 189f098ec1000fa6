"""Work that must not hold up the window: a function run in its own thread, its answer told by signal."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QThread, QTimer, Signal

from spikeview.cancelling import Cancelled, cancellable, checkpoint

Tell = Callable[[object], None]
FRAME_MS = 60  # a first frame of a full screen, with what Qt waits before it paints


class Task(QThread):
    """Runs `work` once, with a function by which it tells how far it is.

    `told` carries what it tells, `succeeded` what it returned, `failed` the exception it raised. Work that was
    cancelled says nothing more: it ends at its next checkpoint, and what it then returned is dropped.
    """

    told = Signal(object)
    succeeded = Signal(object)
    failed = Signal(object)

    def __init__(self, work: Callable[[Tell], Any], parent: QObject) -> None:
        super().__init__(parent)
        self._work = work
        self._cancelled = False

    def run(self) -> None:
        try:
            with cancellable(lambda: self._cancelled):
                signal, answer = self._answer()
        except Cancelled:
            return
        if not self._cancelled:
            signal.emit(answer)

    def cancel(self) -> None:
        """Have the work end at its next checkpoint. Returns at once.

        Nothing is raised from outside into a thread: an exception in the midst of an import would leave half a module
        behind for the rest of the process, and within C++ it would end the process.
        """
        self._cancelled = True

    def _answer(self) -> tuple[Any, object]:
        try:
            return self.succeeded, self._work(self._tell)
        except Exception as error:  # noqa: BLE001  # whatever it is, the window shows it
            return self.failed, error

    def _tell(self, what: object) -> None:
        checkpoint()
        self.told.emit(what)


class Work(QObject):
    """The tasks of one window.

    While any runs, the collector waits: it would collect in whatever thread allocates, and a widget in a cycle that
    ends in a worker takes Qt with it.
    """

    _everywhere = 0  # the running tasks of all windows, counted in the GUI thread

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._running: set[Task] = set()
        self._closed = False

    def start(
        self,
        work: Callable[[Tell], Any],
        done: Callable[..., None],
        failed: Callable[..., None],
        told: Callable[..., None] | None = None,
        *,
        after_frame: bool = False,
    ) -> Task:
        """Begin a task; its slots are called in the GUI thread. After `close`, what a timer asks for never runs.

        One that is to begin `after_frame` leaves the processor to what is about to be painted.
        """
        task = Task(work, self)
        task.succeeded.connect(done)
        task.failed.connect(failed)
        if told is not None:
            task.told.connect(told)
        task.finished.connect(self._on_finished)
        if after_frame:
            QTimer.singleShot(FRAME_MS, self, partial(self._begin, task))
        else:
            self._begin(task)
        return task

    def _begin(self, task: Task) -> None:
        if not self._closed:
            self._running.add(task)
            Work._everywhere += 1
            gc.disable()
            task.start()

    def close(self) -> None:
        """Cancel what is going on and wait for its end: a thread that outlives its window ends the process."""
        self._closed = True
        for task in self._running:
            task.cancel()
        for task in list(self._running):
            task.wait()
            self._let_go(task)

    def _on_finished(self) -> None:
        task = self.sender()
        if isinstance(task, Task) and task in self._running:  # if not, its end was waited for
            self._let_go(task)

    def _let_go(self, task: Task) -> None:
        self._running.remove(task)
        task.deleteLater()
        Work._everywhere -= 1
        if not Work._everywhere:
            gc.enable()
