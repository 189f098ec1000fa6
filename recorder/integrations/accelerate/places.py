"""Which batch of a prepared loader this is."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from torch.nn import Module

from recorder.integrations.loading import length_of


class Place:
    """Pass and index of the batch that was begun last, within the loader that is iterated over."""

    def __init__(self) -> None:
        self._at: tuple[int, int] | None = None
        self._index = 0
        self._length: int | None = None
        self._seen: set[int] = set()
        self._is_restored = False

    def restored(self) -> None:
        """A state was loaded: the next batch is the first of a loader that goes on from there."""
        self._is_restored, self._at = True, None

    def begin(self, loader: Any, models: Collection[Module]) -> str | None:
        """`pass:index` of the batch for the models whose turn it is; None outside of a loader."""
        if loader is None or (self._is_restored and getattr(loader, "use_stateful_dataloader", False)):
            return None  # such a loader goes on by itself where it was, and does not say where
        at, own = (id(loader), int(loader.iteration)), {id(model) for model in models}
        skipped = _skipped(loader)
        if at != self._at:
            self._index, self._seen = skipped, set()
        elif not self._is_turn_of_another(own):
            self._index, self._seen = self._index + 1, set()
        self._seen |= own
        length = length_of(loader)
        # A loader that skips by its sampler is shorter by what it skips.
        self._length = None if length is None else length + skipped
        self._at = at
        return f"{at[1]}:{self._index}"

    def here(self) -> str:
        """The batch within its pass, as a checkpoint and a resume tell of it."""
        return _sampler_at(self._index)

    def following(self) -> str | None:
        """The one after it; None before any."""
        ended = self._length is not None and self._index + 1 >= self._length
        return None if self._at is None else _sampler_at(0 if ended else self._index + 1)

    def _is_turn_of_another(self, models: set[int]) -> bool:
        """Whether another model's turn has come: a GAN accumulates for each of its models in turn, over one batch."""
        return bool(self._seen) and bool(models) and not self._seen & models


def _skipped(loader: Any) -> int:
    """How many batches `skip_first_batches` leaves out of a loader."""
    within = (loader, getattr(loader, "batch_sampler", None))
    return max(int(getattr(each, "skip_batches", 0)) for each in within)


def _sampler_at(index: int) -> str:
    """A new process counts its passes anew, so the place within the pass is all there is to compare."""
    return f"batch {index} of a pass"
