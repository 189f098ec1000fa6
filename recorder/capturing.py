"""The part of the recorder's face that has to do with captures."""

from __future__ import annotations

from typing import Any

from recorder.capture import NoCaptures
from recorder.channel import Channel
from recorder.logbook import Entry
from recorder.readings import fetch_named
from recorder.resuming import Resuming
from recorder.schema import USER_PREFIX


class Capturing(Resuming):
    """Gives the captures what they ask for: the open row, before its step, and its batch."""

    _captures: NoCaptures
    _channels: dict[str, Channel]
    _finished: list[Entry]
    _executed_before: dict[str, int]

    def capture(self, why: str) -> None:
        """Capture the open transition as it is now, whatever its numbers. It takes a capture policy.

        Call it before the optimizer steps: what it captures is the state of that moment.
        """
        channel = self._open_channel()
        if channel is None or not self._captures.wanted:
            self.note_once(
                "capture() takes an open transition, and a recorder with capture=CapturePolicy(): none taken"
            )
            return
        with self.guard:
            self._capture(str(why), channel, {**self._facts(channel), "on_request": True})

    def see_batch(self, batch: Any) -> None:
        """Keep the batch of the open transition for a capture."""
        channel = self._open_channel()
        if channel is not None and channel.row is not None:
            self._captures.see_batch(batch, channel.row.values["batch_id"])

    def _attempting(self, channel: Channel) -> None:
        """An optimizer is about to step."""
        if self._captures.wanted:
            self._consider(channel)
            self._captures.step_follows()

    def _consider(self, channel: Channel) -> None:
        """Look at a row before its step, or at its end where it has none, for a reason to capture it."""
        with self.guard:
            row = channel.row
            if row is None or not self._captures.awaits(row.values["row"], channel.name):
                return
            facts = self._facts(channel)
            reason = self._captures.reason(facts)
            if reason is not None:
                if row.input_absmax is None:
                    row.input_absmax = self._captures.nonfinite_input()
                self._capture(reason, channel, {**facts, "on_request": False})

    def _capture(self, why: str, channel: Channel, facts: dict[str, Any]) -> None:
        self._logbook.flush()  # rows that wait for their numbers are not counted yet
        executed = channel.clocks.executed + sum(e.measures.fired for e in self._finished if e.channel is channel)
        here = executed - self._executed_before[channel.name]
        self._captures.capture(why, {**facts, "executed_n": executed, "executed_in_segment": here})

    def _open_channel(self) -> Channel | None:
        return next((channel for channel in self._channels.values() if channel.row is not None), None)

    def _facts(self, channel: Channel) -> dict[str, Any]:
        """The columns of a row that are known before its step, and what t.record() was told by then."""
        assert channel.row is not None
        numbers = fetch_named(channel.row.readings())
        columns = channel.row.columns(numbers)
        for name in ("attempted", "executed", "skip_reason"):
            columns.pop(name, None)
        own = {f"{USER_PREFIX}{name}": value for name, value in channel.row.user_fields(numbers).items()}
        return {**columns, **own, "precision": self._precision()}

    def _precision(self) -> str | None:
        """Of the forward, as far as it was seen."""
        raise NotImplementedError
