"""From finished measures to stored rows: reading, counting, triggering, writing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from recorder.channel import Channel
from recorder.clocks import Clocks, scheduler_position
from recorder.guard import Guard
from recorder.measures import Measures
from recorder.readings import Numbers, fetch, is_on_host
from recorder.store import RunWriter
from recorder.watch import Watch


@dataclass(slots=True)
class Entry:
    """One row on its way into the run: `columns` is empty while its numbers are still on a device."""

    channel: Channel
    measures: Measures
    counters: dict[str, Any]
    columns: dict[str, Any]
    user: dict[str, Any]

    @property
    def row(self) -> int:
        return int(self.measures.values["row"])


class Logbook:
    """Turns `Measures` into rows of the run, in order.

    Rows whose numbers are on the host are written at once. Others are written with what the host knows and marked as
    pending; after `capacity` of them their numbers are copied in one go and the rows completed.
    """

    def __init__(self, writer: RunWriter, watch: Watch, capacity: int, guard: Guard) -> None:
        self.row = writer.next_row
        self._writer = writer
        self._watch = watch
        self._capacity = 1 if watch.needs_every_row else capacity
        self._guard = guard
        self._waiting: list[tuple[Entry, dict[str, Tensor]]] = []
        self._last: dict[str, Entry] = {}

    @property
    def last_step(self) -> tuple[int, int]:
        """Step and micro-step of the last stored row; (-1, 0) in a new run."""
        rows = sorted(self._writer.last_rows.values(), key=lambda row: row["row"])
        return (int(rows[-1]["step"]), int(rows[-1]["micro_step"] or 0)) if rows else (-1, 0)

    def take_row(self) -> int:
        self.row += 1
        return self.row - 1

    def restore(self, channel: Channel) -> None:
        """Let the clocks go on where the run's last segment left them."""
        last = self._writer.last_rows.get(channel.name)
        if last is None:
            return
        scheduled = (last["scheduled_n"] or 0) if channel.scheduler is not None else None
        channel.clocks = Clocks(last["attempted_n"] or 0, last["executed_n"] or 0, scheduled)

    def finish(self, channel: Channel, measures: Measures) -> Entry:
        """Count a row that is over. `write` stores it."""
        clocks = channel.clocks
        clocks.attempted += measures.attempted
        moved = _scheduler_moved(channel)
        if clocks.scheduled is not None:
            clocks.scheduled += moved or 0
        counters = {
            "segment": self._writer.segment,
            "attempted_n": clocks.attempted,
            "scheduled": moved,
            "scheduled_n": clocks.scheduled,
        }
        return Entry(channel, measures, counters, {}, {})

    def write(self, entry: Entry) -> None:
        """Store one finished row; row numbers must not fall."""
        self._last[entry.channel.name] = entry
        readings = entry.measures.readings()
        if not self._waiting and is_on_host(list(readings.values())):
            self._complete(entry, dict(zip(readings, fetch(list(readings.values())), strict=True)))
            self._writer.append(entry.columns, entry.user)
            self._follow_up(entry)
            return
        known = {**entry.measures.values, "attempted": entry.measures.attempted, **entry.counters}
        self._writer.append(known, pending=True)
        self._waiting.append((entry, readings))
        if len(self._waiting) >= self._capacity:
            self.flush()

    def credit_scheduler(self, channel: Channel) -> None:
        """Credit a scheduler step taken after the last row closed to that row."""
        moved = _scheduler_moved(channel)
        entry = self._last.get(channel.name)
        if not moved or entry is None or channel.clocks.scheduled is None:
            return
        channel.clocks.scheduled += moved
        entry.counters["scheduled"] = (entry.counters["scheduled"] or 0) + moved
        entry.counters["scheduled_n"] = channel.clocks.scheduled
        if entry.columns:
            entry.columns |= entry.counters
            self._writer.amend(entry.columns, entry.user)

    def flush(self) -> None:
        """Complete the rows that wait for their numbers: one copy for all of them."""
        waiting, self._waiting = self._waiting, []
        try:
            numbers = iter(fetch([tensor for _, readings in waiting for tensor in readings.values()]))
            read = [{name: next(numbers) for name in readings} for _, readings in waiting]
        except RuntimeError as error:
            # One tensor that cannot be read must not cost the numbers of the others.
            self._guard.report(error)
            read = [_one_by_one(readings) for _, readings in waiting]
        for (entry, _), numbers_of_row in zip(waiting, read, strict=True):
            with self._guard:
                self._complete(entry, numbers_of_row)
                self._writer.amend(entry.columns, entry.user)
                self._follow_up(entry)

    def event(self, kind: str, **fields: Any) -> None:
        self._writer.event(kind, **fields)

    def update_manifest(self, **fields: Any) -> None:
        self._writer.update_manifest(**fields)

    def close(self, **manifest: Any) -> None:
        """Complete and seal everything; `manifest` holds what became known while running."""
        with self._guard:
            self.flush()
        with self._guard:
            self._writer.update_manifest(**manifest)
        self._writer.close()

    def _complete(self, entry: Entry, numbers: Mapping[str, Numbers]) -> None:
        """Fill the entry's columns from its numbers, which come in the order of the rows."""
        measures, clocks = entry.measures, entry.channel.clocks
        columns = measures.columns(numbers)
        clocks.executed += columns["executed"]
        entry.columns = columns | entry.counters | {"executed_n": clocks.executed}
        entry.user = measures.user_fields(numbers)
        if measures.layers is not None:
            scale = measures.gradient_scale
            self._writer.append_layers(measures.layers.rows(entry.row, entry.channel.name, numbers, scale))
        elif measures.gradient is not None:
            self._watch.hold(entry.row, entry.channel.name, measures, numbers["norms"])

    def _follow_up(self, entry: Entry) -> None:
        """What a written row sets off."""
        begun = self._watch.see(entry.columns)
        for trigger, reason in begun:
            where = {"row": entry.row, "step": entry.columns["step"], "optimizer": entry.channel.name}
            self.event("trigger", trigger=trigger, reason=reason, **where)
        if begun:
            self._writer.append_layers(self._watch.detail())


def _one_by_one(readings: Mapping[str, Tensor]) -> dict[str, Numbers]:
    found = {}
    for name, tensor in readings.items():
        try:
            found[name] = fetch([tensor])[0]
        except (RuntimeError, TypeError):
            found[name] = np.full(tensor.numel(), np.nan)
    return found


def _scheduler_moved(channel: Channel) -> int | None:
    """By how much the scheduler moved since it was last asked; None without a scheduler."""
    position, seen = scheduler_position(channel.scheduler), channel.scheduler_seen
    channel.scheduler_seen = position
    return None if position is None or seen is None else position.moved_since(seen)
