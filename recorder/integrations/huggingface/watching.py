"""`Trainer.train()` watched from outside: no event of the Trainer's tells a callback which Trainer it is in."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import wraps
from pathlib import Path
from typing import Any, Protocol

from transformers import Trainer


class Watcher(Protocol):
    """What is told of a training; `directory` is where it records it."""

    directory: Any

    def within(self, trainer: Trainer) -> AbstractContextManager[None]:
        """While `trainer.train()` runs, and however it ends."""


def watch(kind: type[Trainer], watcher: type[Watcher]) -> None:
    """Let `train()` of this class tell those of its callbacks that are of class `watcher`."""
    train = kind.train
    if getattr(train, "_is_watched", False):
        return

    @wraps(train)
    def watched(self: Trainer, *args: Any, **kwargs: Any) -> Any:
        callbacks = [each for each in self.callback_handler.callbacks if isinstance(each, watcher)]
        _refuse_two_in_one_run(callbacks)
        with ExitStack() as stack:
            for callback in callbacks:
                stack.enter_context(callback.within(self))
            return train(self, *args, **kwargs)

    watched._is_watched = True  # type: ignore[attr-defined]  # the mark that keeps it from being wrapped again
    kind.train = watched


def _refuse_two_in_one_run(callbacks: Sequence[Watcher]) -> None:
    seen: list[Path | None] = []
    for callback in callbacks:
        place = None if callback.directory is None else Path(callback.directory).resolve()
        if place in seen:
            where = callback.directory or "the output directory"
            raise ValueError(f"two SpikeviewCallbacks record into {where}: leave one of them out")
        seen.append(place)
