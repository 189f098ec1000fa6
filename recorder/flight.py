"""FlightRecorder: the only class a training loop sees."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from time import perf_counter, time_ns
from types import TracebackType
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from recorder import settings
from recorder.channel import Channel
from recorder.deep import Cadence, ForwardReadings, ForwardWatch
from recorder.describe import describe
from recorder.guard import Guard, describe_error
from recorder.logbook import Entry, Logbook
from recorder.measures import Measures
from recorder.memory import MemoryGauge
from recorder.remarks import Remarks
from recorder.store import RunWriter
from recorder.transition import Transition
from recorder.trigger import Trigger, default
from recorder.watch import Watch

MOST_USER_FIELDS = 500


class FlightRecorder(Remarks):
    """Writes each transition of a training loop to a run directory.

    `optimizer` is one optimizer or a dict of named ones; then `scheduler` and `max_norm` may be dicts as well.
    `max_norm` is what `t.clip_grad_norm_()` clips to. `deep_every` is the cadence of deep rows: "auto" keeps their
    measured cost within `overhead_budget`, a number fixes it, 0 turns them off; `deep_parameters` names the parameters
    that a deep row looks at, by patterns such as "blocks.3.*". `capacity` rows at most wait on a device before they are
    copied, and the gradient norms of so many are held for a trigger to write out. `config` is kept in the manifest.
    `triggers` replaces the default ones (see `recorder.trigger.default`).

    The run is ended by the recorder only where it is asked to: `on_nonfinite="raise"` raises `NonFiniteError` after
    the row with a non-finite loss or gradient is written; `fail_on_skip_rate` raises `SkipRateExceeded` where the
    share of skipped attempts over 1,000 stays above it for `fail_after` steps. Both read every row on the host.

    Raises `recorder.store.StoreError` where the directory already holds a run (unless `resume=True`) or cannot be
    written, and ValueError for settings that contradict each other. After that it raises nothing of its own.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        model: torch.nn.Module,
        optimizer: Optimizer | Mapping[str, Optimizer],
        *,
        scaler: torch.amp.GradScaler | Mapping[str, torch.amp.GradScaler | None] | None = None,
        scheduler: Any = None,
        max_norm: float | Mapping[str, float | None] | None = None,
        resume: bool = False,
        deep_every: int | str = "auto",
        deep_parameters: Sequence[str] = (),
        overhead_budget: float = 0.01,
        capacity: int = 64,
        config: Mapping[str, Any] | None = None,
        triggers: Sequence[Trigger] | None = None,
        on_nonfinite: str | None = None,
        fail_on_skip_rate: float | None = None,
        fail_after: int = 100,
        rank: int | None = None,
    ) -> None:
        optimizers = settings.named_optimizers(optimizer)
        schedulers = settings.per_optimizer("scheduler", scheduler, optimizers)
        scalers = settings.per_optimizer("scaler", scaler, optimizers)
        limits = settings.max_norms(max_norm, optimizers)
        ending = settings.limits(on_nonfinite, fail_on_skip_rate, fail_after)
        watched = default() if triggers is None else settings.triggers(triggers)
        self._cadence = Cadence(deep_every, overhead_budget)
        self._model = model
        self._memory = MemoryGauge(next((p.device for p in model.parameters()), torch.device("cpu")))
        manifest = describe(model, optimizers, schedulers, scalers, limits, config)
        writer = RunWriter.create(
            directory,
            manifest,
            rank=settings.rank() if rank is None else rank,
            resume=resume,
            on_error=lambda error: self.guard.report(error),
        )
        self.guard = Guard(lambda text: writer.event("recorder_fault", text=text))
        self._forward = ForwardWatch(model, self.guard)
        self._watch = Watch(watched, ending, capacity, self.guard)
        self._logbook = Logbook(writer, self._watch, capacity, self.guard)
        self._channels = {
            name: Channel(
                name,
                opt,
                names=self._parameter_names,
                scaler=scalers.get(name),
                scheduler=schedulers.get(name),
                max_norm=limits.get(name),
                deep_parameters=tuple(deep_parameters),
                guard=self.guard,
                again=self._again,
            )
            for name, opt in optimizers.items()
        }
        for channel in self._channels.values():
            self._logbook.restore(channel)
        # A forked child has the recorder, but not the run.
        self._pid = os.getpid()
        self._finished: list[Entry] = []
        self._user_fields: set[str] = set()
        self._noted: set[str] = set()
        self._open = False
        self._closed = False
        self._told: BaseException | None = None
        self._started = 0.0
        self._step, self._micro_step = self._logbook.last_step

    def transition(self, batch_id: Any = None, *, step: int | None = None, accumulating: bool = False) -> Transition:
        """Open one transition, for use as `with recorder.transition(batch_id=...) as t:`.

        `batch_id` is text or has a text form; `step` defaults to the count of attempts, so it stays the same over the
        micro-steps of an accumulation, which are declared by `accumulating=True`.
        """
        return self.begin(batch_id, step=step, accumulating=accumulating)

    def begin(self, batch_id: Any = None, *, step: int | None = None, accumulating: bool = False) -> Transition:
        """`transition` for callbacks that cannot use `with`; `end()` closes it."""
        if self._open:
            self.end()
        for channel in self._channels.values():
            channel.opened = []
        with self.guard:
            if not self._closed and os.getpid() == self._pid:
                self._begin(batch_id, step, accumulating)
        return Transition(self, self._channels)

    def end(self, error: BaseException | None = None) -> None:
        """Close the open transition. `error` is the exception that ended it early, if one did."""
        if not self._open:
            return
        self._open = False
        forward: ForwardReadings | None = None
        with self.guard:
            forward = self._forward.close()
        with self.guard:
            for channel in self._channels.values():
                self._finish(channel, forward)
            finished, self._finished = self._finished, []
            for entry in sorted(finished, key=lambda entry: entry.row):
                with self.guard:
                    self._logbook.write(entry)
            self._tell_cadence()
        if error is not None:
            self._tell_exception(error)
        elif self._watch.ending is not None:
            self._end_run()

    @property
    def tripped(self) -> bool:
        """Whether a trigger began to trip with the last row that was read."""
        return self._watch.tripped

    def close(self) -> None:
        """Close what is open, seal the run and let go of the optimizers. May be called twice."""
        if self._closed or os.getpid() != self._pid:
            return
        self.end()
        self._closed = True
        for channel in self._channels.values():
            channel.detach()
        with self.guard:
            for channel in self._channels.values():
                self._logbook.credit_scheduler(channel)
            self._logbook.close(deep=self._cadence.describe())
            self._memory.close()

    def __enter__(self) -> FlightRecorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._tell_exception(error)
        self.close()

    def admit_user_field(self, name: str) -> None:
        """Raise ValueError for a field beyond the number of different ones that a run can hold."""
        if name not in self._user_fields:
            if len(self._user_fields) >= MOST_USER_FIELDS:
                raise ValueError(f"more than {MOST_USER_FIELDS} different user fields: {name} is not recorded")
            self._user_fields.add(name)

    def see_precision(self) -> None:
        """Note autocast's type where it is on now: called where the loop is likely to be inside it."""
        self._forward.see_autocast()

    def _begin(self, batch_id: Any, step: int | None, accumulating: bool) -> None:
        for channel in self._channels.values():
            with self.guard:
                self._logbook.credit_scheduler(channel)
        chosen = next(iter(self._channels.values())).clocks.attempted
        if step is not None:
            with self.guard:
                chosen = settings.step_number(step)
        text: str | None = None
        with self.guard:
            text = None if batch_id is None else str(batch_id.tolist() if isinstance(batch_id, Tensor) else batch_id)
        self._micro_step = self._micro_step + 1 if chosen == self._step else 0
        self._step = chosen
        deep = self._cadence.due(self._logbook.row) or self._watch.wants_detail(self._logbook.row)
        values = {
            "row": self._logbook.take_row(),
            "step": chosen,
            "micro_step": self._micro_step,
            "time_ns": time_ns(),
            "batch_id": text,
            "rng_seed": _signed(torch.initial_seed()),
        }
        for channel in self._channels.values():
            channel.open(Measures({**values, "optimizer": channel.name}, accumulating=accumulating), deep)
        self._forward.open(deep)
        self._open = True
        self._started = perf_counter()

    def _finish(self, channel: Channel, forward: ForwardReadings | None = None) -> None:
        row, channel.row = channel.row, None
        if row is None:
            return
        row.forward = forward
        row.values["precision"] = self._forward.precision
        row.values["memory_bytes"] = self._memory.read()
        self._finished.append(self._logbook.finish(channel, row))

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

    def _tell_cadence(self) -> None:
        deep = [channel.deep_seconds for channel in self._channels.values() if channel.is_deep]
        seconds = perf_counter() - self._started
        was_measured = self._cadence.cost is not None
        self._cadence.ran(self._logbook.row - 1, seconds, sum(deep) + self._forward.seconds if deep else None)
        if not was_measured and self._cadence.cost is not None:
            # A killed run should say what it chose, too; close() tells the last measurement.
            self._logbook.update_manifest(deep=self._cadence.describe())

    def _tell_exception(self, error: BaseException) -> None:
        """Note an exception of the loop's, once; leaving a generator is none."""
        if error is not self._told and not isinstance(error, GeneratorExit):
            self._told = error
            self.remark("exception", text=describe_error(error))

    def _end_run(self) -> None:
        """Raise what a limit asked for, once, with everything written."""
        ending, self._watch.ending = self._watch.ending, None
        assert ending is not None
        with self.guard:
            self._logbook.flush()
        self._tell_exception(ending)
        raise ending

    def _parameter_names(self) -> dict[int, str]:
        return {id(parameter): name for name, parameter in self._model.named_parameters()}


def _signed(seed: int) -> int:
    """A seed of torch has 64 bits without a sign; the column's 64 bits have one."""
    return (seed + 2**63) % 2**64 - 2**63
