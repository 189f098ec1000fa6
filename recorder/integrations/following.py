"""What a callback holds while a training runs: its recorder, and methods of the framework's that it has replaced."""

from __future__ import annotations

from contextlib import ExitStack

from recorder.flight import FlightRecorder
from recorder.transition import Transition


class Following:
    """`recorder` is the one of the training that runs, None outside of one."""

    def __init__(self) -> None:
        self.recorder: FlightRecorder | None = None
        self._replaced = ExitStack()

    @property
    def transition(self) -> Transition | None:
        """The row that is open."""
        return None if self.recorder is None else self.recorder.current

    def _let_go(self) -> None:
        """Put the framework's methods back, and close the run."""
        self._replaced.close()
        if self.recorder is not None:
            self.recorder.close()
            self.recorder = None
