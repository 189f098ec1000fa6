"""What a loop says beside its transitions: checkpoints, validation, resumes, notes. Each is an event of the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from recorder.guard import Guard
from recorder.logbook import Logbook


class Remarks:
    """The part of the recorder's face that only writes events."""

    guard: Guard
    _logbook: Logbook
    _noted: set[str]

    def remark(self, kind: str, **fields: Any) -> None:
        """Write an event of any kind, with the number of the last row."""
        with self.guard:
            self._logbook.event(kind, row=self._logbook.row - 1, **fields)

    def checkpoint(self, name: str) -> None:
        """Note that the loop has saved its state."""
        self.remark("checkpoint", name=str(name))

    def validation(self, loss: Tensor | float) -> None:
        """Note a validation loss."""
        with self.guard:
            self.remark("validation", loss=float(loss))

    def resumed(self, from_checkpoint: str, restored: Sequence[str] = ()) -> None:
        """Note which checkpoint the loop continues from and which of its parts came back.

        `restored` names them: model, optimizer, scheduler, scaler, rng, sampler, accumulation.
        """
        self.remark("resume", from_checkpoint=str(from_checkpoint), restored=list(restored))

    def note_once(self, text: str) -> None:
        """Keep a remark of the recorder's own, the first time it is made."""
        if text not in self._noted:
            self._noted.add(text)
            self.remark("note", text=text)

    def note(self, text: str) -> None:
        """Keep a remark of the user's in the run."""
        self.remark("note", text=str(text))
