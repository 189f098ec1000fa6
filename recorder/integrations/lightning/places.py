"""Which batch of Lightning's this is, as its loader gave it."""

from __future__ import annotations

from typing import Any


class Place:
    """Epoch and index of the batch that was begun last.

    In a resumed epoch Lightning counts its batches on, and yet a loader without a state of its own begins anew.
    """

    def __init__(self) -> None:
        self._ahead: tuple[int, int] | None = None
        self._at: tuple[int, int] | None = None

    def forget_epoch(self) -> None:
        """The next batch may be one of a resumed epoch."""
        self._ahead = None

    def begin(self, trainer: Any, batch_idx: int) -> str:
        """`epoch:index` of a batch."""
        if self._ahead is None:
            goes_on = hasattr(trainer.train_dataloader, "load_state_dict")
            self._ahead = trainer.current_epoch, 0 if goes_on else batch_idx
        epoch, ahead = self._ahead
        self._at = trainer.current_epoch, batch_idx - ahead if trainer.current_epoch == epoch else batch_idx
        return f"{self._at[0]}:{self._at[1]}"

    def following(self, trainer: Any) -> str | None:
        """That of the batch after it; None before any."""
        if self._at is None:
            return None
        epoch, index = self._at
        return f"{epoch + 1}:0" if index + 1 >= trainer.num_training_batches else f"{epoch}:{index + 1}"
