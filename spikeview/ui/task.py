"""Work that must not hold up the window: a function run in its own thread, its answer told by signal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, QThread, Signal


class Task(QThread):
    """Runs `work` once. `succeeded` carries what it returned, `failed` the exception it raised."""

    succeeded = Signal(object)
    failed = Signal(object)

    def __init__(self, work: Callable[[], Any], parent: QObject) -> None:
        super().__init__(parent)
        self._work = work

    def run(self) -> None:
        try:
            answer = self._work()
        except Exception as error:  # noqa: BLE001  # whatever it is, the window shows it
            self.failed.emit(error)
        else:
            self.succeeded.emit(answer)
