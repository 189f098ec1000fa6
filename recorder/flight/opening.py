"""The part of the recorder's face that opens transitions."""

from __future__ import annotations

import os
from time import perf_counter, time_ns
from typing import Any

import torch

from recorder import settings
from recorder.channel import Channel
from recorder.flight.closing import Closing
from recorder.measures import Measures
from recorder.sample_ids import batch_text
from recorder.schema import COLUMNS
from recorder.transition import Transition

MOST_USER_FIELDS = 500


class Opening(Closing):
    """Opens a row of each optimizer, and another one where an optimizer steps again."""

    def __init__(self) -> None:
        super().__init__()
        self._current: Transition | None = None
        self._user_fields: set[str] = set()

    def transition(self, batch_id: Any = None, *, step: int | None = None, accumulating: bool = False) -> Transition:
        """Open one transition, for use as `with recorder.transition(batch_id=...) as t:`.

        `batch_id` is text or has a text form; a list of numbers is one of samples, as what `recorder.data.identified`
        yields. `step` defaults to the count of attempts, so it stays the same over the micro-steps of an accumulation,
        which are declared by `accumulating=True`.
        """
        return self.begin(batch_id, step=step, accumulating=accumulating)

    def begin(
        self, batch_id: Any = None, *, step: int | None = None, accumulating: bool = False, after_forward: bool = False
    ) -> Transition:
        """`transition` for callbacks that cannot use `with`; `end()` closes it.

        `after_forward` says that the batch has been through the model already, so that no other forward is taken for
        its own.
        """
        if self._open:
            self.end()
        for channel in self._channels.values():
            channel.opened = []
        with self.guard:
            if not self._closed and os.getpid() == self._pid:
                self._begin(batch_id, step, accumulating, after_forward)
        self._current = Transition(self, self._channels)
        return self._current

    @property
    def current(self) -> Transition | None:
        """The transition that is open now."""
        return self._current if self._open else None

    def see_precision(self) -> None:
        """Note autocast's type where it is on now: called where the loop is likely to be inside it."""
        self._forward.see_autocast()

    def admit_user_field(self, name: str) -> None:
        """Raise ValueError for a field beyond the number of different ones that a run can hold."""
        if name not in self._user_fields:
            if len(self._user_fields) >= MOST_USER_FIELDS:
                raise ValueError(f"more than {MOST_USER_FIELDS} different user fields: {name} is not recorded")
            self._user_fields.add(name)
            if name in COLUMNS:
                self.tell_namesake(name)

    def _begin(self, batch_id: Any, step: int | None, accumulating: bool, after_forward: bool) -> None:
        channels, logbook = self._channels.values(), self._logbook
        for channel in channels:
            with self.guard:
                logbook.credit_scheduler(channel)
        chosen = next(iter(channels)).clocks.attempted
        if step is not None:
            with self.guard:
                chosen = settings.step_number(step)
        text: str | None = None
        if batch_id is not None:
            with self.guard:
                text = batch_text(batch_id)
        self._micro_step = self._micro_step + 1 if chosen == self._step else 0
        self._step = chosen
        deep = self._cadence.due(logbook.row) or self._watch.wants_detail(logbook.row)
        row = logbook.take_row()
        values = {
            "row": row,
            "step": chosen,
            "micro_step": self._micro_step,
            "time_ns": time_ns(),
            "batch_id": text,
            "rng_seed": _signed(torch.initial_seed()),
        }
        for channel in channels:
            channel.open(Measures({**values, "optimizer": channel.name}, accumulating=accumulating), deep)
        self._forward.open(deep, after_forward)
        self._captures.begin(row)
        self._open = True
        self._started = perf_counter()

    def _again(self, channel: Channel) -> None:
        """An optimizer steps again within one transition: the same step, a row and a micro-step of its own."""
        row, ahead = channel.row, channel.ahead or Measures({})
        if row is None:
            return
        self._finish(channel)
        self._micro_step += 1
        ahead.values = {
            **row.values,
            "row": self._logbook.take_row(),
            "micro_step": self._micro_step,
            "time_ns": time_ns(),
        }
        channel.open(ahead, channel.is_deep)


def _signed(seed: int) -> int:
    """A seed of torch has 64 bits without a sign; the column's 64 bits have one."""
    return (seed + 2**63) % 2**64 - 2**63
