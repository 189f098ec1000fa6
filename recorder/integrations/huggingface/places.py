"""Which batch of the Trainer's comes next."""

from __future__ import annotations

from transformers import TrainerState, TrainingArguments

from recorder.integrations.loading import length_of


class Place:
    """Epoch and index of a batch; of a resumed epoch the batches that were trained on are skipped."""

    def __init__(self) -> None:
        self.epoch: int | None = None
        self.index = 0
        self._length = 0

    def __str__(self) -> str:
        return f"{self.epoch}:{self.index}"

    def begin_epoch(self, args: TrainingArguments, state: TrainerState, loader: object) -> None:
        """Go to the first batch of the next epoch, or to that which a resumed training goes on with."""
        if self.epoch is not None:
            self.epoch, self.index = self.epoch + 1, 0
            return
        done = float(state.epoch or 0)
        self.epoch = int(done)
        steps = args.max_steps * args.gradient_accumulation_steps
        self._length = length_of(loader) or steps
        self.index = 0 if args.ignore_data_skip else round((done - self.epoch) * self._length)

    def after_checkpoint(self) -> str:
        """That of the batch which a training goes on with from here."""
        ended = self.epoch is not None and self.index >= self._length
        return f"{(self.epoch or 0) + 1}:0" if ended else str(self)
