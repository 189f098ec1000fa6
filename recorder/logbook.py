"""From finished measures to stored rows: reading, counting, triggering, writing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, nan
from typing import Any

from torch import Tensor

from recorder.channel import Channel
from recorder.clocks import Clocks, scheduler_position
from recorder.guard import Guard
from recorder.measures import Measures
from recorder.readings import Number, fetch, fetch_named
from recorder.schema import USER_PREFIX
from recorder.store import RunWriter
from recorder.telling import Telling
from recorder.trackers import Tracker
from recorder.watch import Watch


@dataclass(slots=True)
class Entry:
    """One row on its way into the run: `columns` is empty while its numbers are still on a device."""

    row: int
    channel: Channel
    measures: Measures
    columns: dict[str, Any] = field(default_factory=dict)
    user: dict[str, Any] = field(default_factory=dict)


class Logbook:
    """Turns `Measures` into rows of the run, in order.

    Rows whose numbers are on the host are written at once. Others are written with what the host knows and marked as
    pending; after `capacity` of them their numbers are copied in one go and the rows completed.
    """

    def __init__(
        self,
        writer: RunWriter,
        watch: Watch,
        capacity: int,
        guard: Guard,
        trackers: Sequence[Tracker] = (),
        is_alone: bool = True,
    ) -> None:
        self.row = self._first_row = writer.next_row
        self._writer = writer
        self._watch = watch
        self._capacity = 1 if watch.needs_every_row else capacity
        self._guard = guard
        self._waiting: list[tuple[Entry, dict[str, Tensor]]] = []
        self._last: dict[str, Entry] = {}
        self._is_alone = is_alone
        self._tellings = [
            Telling(each, str(writer.path), guard.report, lambda text: self.event("note", row=self.row - 1, text=text))
            for each in trackers
        ]

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

    def begin_segment(self) -> None:
        """What follows continues from an earlier state: a segment of its own, unless this one has no rows yet."""
        if self.row > self._first_row:
            self._writer.segment += 1
            self._first_row = self.row

    def see_scheduler(self, channel: Channel) -> None:
        """Take the scheduler's position as it is, without counting how it came there."""
        channel.scheduler_seen = scheduler_position(channel.scheduler)

    def is_accumulating(self, channel: Channel) -> bool:
        """Whether the last row left its gradients for a step that is still to come."""
        last = self._last.get(channel.name)
        return last is not None and not last.measures.attempted and last.measures.is_accumulating

    def checkpoint_state(self, name: str) -> dict[str, Any] | None:
        """The recorder's own state at the last checkpoint of this name, if there was one."""
        found = [e for e in self._writer.events() if e.get("kind") == "checkpoint" and e.get("name") == name]
        state = found[-1].get("state") if found else None
        return state if isinstance(state, dict) else None

    def finish(self, channel: Channel, measures: Measures) -> Entry:
        """Count a row that is over. `write` stores it."""
        clocks = channel.clocks
        clocks.attempted += measures.attempted
        moved = _scheduler_moved(channel)
        if clocks.scheduled is not None:
            clocks.scheduled += moved or 0
        measures.values["segment"] = self._writer.segment
        measures.values["attempted_n"] = clocks.attempted
        measures.values["scheduled"] = moved
        measures.values["scheduled_n"] = clocks.scheduled
        return Entry(int(measures.values["row"]), channel, measures)

    def write(self, entry: Entry) -> None:
        """Store one finished row; row numbers must not fall."""
        self._last[entry.channel.name] = entry
        readings = entry.measures.readings()
        if not self._waiting and (not readings or all(reading.is_cpu for reading in readings.values())):
            self._complete(entry, fetch_named(readings))
            self._writer.append(entry.columns, entry.user)
            self._follow_up(entry)
            return
        self._writer.append({**entry.measures.values, "attempted": entry.measures.attempted}, pending=True)
        self._waiting.append((entry, readings))
        if len(self._waiting) >= self._capacity:
            self.flush()

    def credit_scheduler(self, channel: Channel) -> None:
        """Credit a scheduler step taken after the last row closed to that row."""
        if channel.scheduler is None:
            return
        moved = _scheduler_moved(channel)
        entry = self._last.get(channel.name)
        if not moved or entry is None or channel.clocks.scheduled is None:
            return
        channel.clocks.scheduled += moved
        values = entry.measures.values
        values["scheduled"] = (values["scheduled"] or 0) + moved
        values["scheduled_n"] = channel.clocks.scheduled
        if entry.columns:
            entry.columns |= {name: values[name] for name in ("scheduled", "scheduled_n")}
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
        for telling in self._tellings:
            with self._guard:
                telling.close()
        self._writer.close()

    def _complete(self, entry: Entry, numbers: Mapping[str, Any]) -> None:
        """Fill the entry's columns from its numbers, which come in the order of the rows."""
        measures, clocks = entry.measures, entry.channel.clocks
        columns = entry.columns = measures.columns(numbers)
        clocks.executed += columns["executed"]
        columns["executed_n"] = clocks.executed
        if measures.user:
            entry.user = measures.user_fields(numbers)
        gradient = measures.gradient
        if gradient is None:
            return
        norms = numbers.get("norms", gradient.norms)
        if measures.layers is None:
            held = gradient if norms is gradient.norms else gradient._replace(norms=norms)
            self._watch.hold(entry.row, entry.channel.name, held, measures.gradient_scale)
        else:
            found = {**numbers, "norms": norms}
            layers = measures.layers.rows(entry.row, entry.channel.name, found, measures.gradient_scale)
            self._writer.append_layers(layers)

    def _follow_up(self, entry: Entry) -> None:
        """What a written row sets off."""
        columns = entry.columns
        if entry.user:
            columns = {**columns, **{f"{USER_PREFIX}{name}": value for name, value in entry.user.items()}}
        begun = self._watch.see(columns)
        for trigger, reason in begun:
            where = {"row": entry.row, "step": entry.columns["step"], "optimizer": entry.channel.name}
            self.event("trigger", trigger=trigger, reason=reason, **where)
        if begun:
            self._writer.append_layers(self._watch.detail())
        if self._tellings:
            tripped = "; ".join(f"{trigger}: {reason}" for trigger, reason in begun) or None
            for telling in self._tellings:
                telling.row(entry.columns, self._is_alone, tripped)


def _one_by_one(readings: Mapping[str, Tensor]) -> dict[str, Number]:
    found: dict[str, Number] = {}
    for name, tensor in readings.items():
        try:
            found[name] = fetch([tensor])[0]
        except (RuntimeError, TypeError):
            found[name] = nan if tensor.dim() == 0 else [nan] * tensor.numel()
    return found


def _scheduler_moved(channel: Channel) -> int | None:
    """How often the loop stepped the scheduler since it was last asked; None without a scheduler."""
    if channel.scheduler is None:
        return None
    position, seen = scheduler_position(channel.scheduler), channel.scheduler_seen
    channel.scheduler_seen = position
    return None if position is None or seen is None else ceil(position.moved_since(seen) / channel.scheduler_stride)
