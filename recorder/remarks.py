"""What a loop says beside its transitions: validation, notes. Each is an event of the run."""

from __future__ import annotations

import warnings
from typing import Any

from torch import Tensor

from recorder.guard import Guard
from recorder.logbook import Logbook
from recorder.schema import USER_PREFIX

# What takes the columns that a loop tells.
_TOLD_BY = {
    "loss": "t.observe_loss()",
    "loss_count": "t.observe_loss(count=)",
    "grad_norm": "t.observe_grad_norm()",
    "input_absmax": "t.observe_inputs()",
    "batch_id": "recorder.transition(batch_id=)",
    "step": "recorder.transition(step=)",
}


class Remarks:
    """The part of the recorder's face that only writes events."""

    guard: Guard
    _logbook: Logbook
    _noted: set[str]

    def remark(self, kind: str, **fields: Any) -> None:
        """Write an event of any kind, with the number of the last row."""
        with self.guard:
            self._logbook.event(kind, row=self._logbook.row - 1, **fields)

    def validation(self, loss: Tensor | float) -> None:
        """Note a validation loss."""
        with self.guard:
            self.remark("validation", loss=float(loss))

    def note_once(self, text: str) -> None:
        """Keep a remark of the recorder's own, the first time it is made."""
        if text not in self._noted:
            self._noted.add(text)
            self.remark("note", text=text)

    def tell_namesake(self, name: str) -> None:
        """Warn, and keep a remark, that a user's field has the name of a column that it does not fill."""
        how = _TOLD_BY.get(name)
        what = f"record({name}=) is kept as {USER_PREFIX}{name}, which no diagnosis reads: "
        what += f"give it to {how}" if how else f"the column {name} is the recorder's own"
        self.note_once(what)
        if how:
            warnings.warn(what, RuntimeWarning, stacklevel=5)

    def note(self, text: str) -> None:
        """Keep a remark of the user's in the run."""
        self.remark("note", text=str(text))
