"""FlightRecorder: the only class a training loop sees."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch.optim import Optimizer

from recorder import settings
from recorder.capture import CapturePolicy, Captures, NoCaptures, states_of
from recorder.channel import Channel
from recorder.deep import Cadence, ForwardWatch
from recorder.describe import describe
from recorder.flight.opening import Opening
from recorder.guard import Guard
from recorder.logbook import Logbook
from recorder.memory import MemoryGauge
from recorder.shards import reduction
from recorder.store import RunWriter
from recorder.trackers import Tracker
from recorder.trigger import Trigger, default
from recorder.watch import Watch


class FlightRecorder(Opening):
    """Writes each transition of a training loop to a run directory.

    `optimizer` is one optimizer or a dict of named ones; then `scheduler` and `max_norm` may be dicts as well.
    `max_norm` is what `t.clip_grad_norm_()` clips to. `deep_every` is the cadence of deep rows: "auto" keeps their
    measured cost within `overhead_budget`, a number fixes it, 0 turns them off; `deep_parameters` names the parameters
    that a deep row looks at, by patterns such as "blocks.3.*". `capacity` rows at most wait on a device before they are
    copied, and the gradient norms of so many are held for a trigger to write out. `config` is kept in the manifest.
    `triggers` replaces the default ones (see `recorder.trigger.default`). `capture` is a `CapturePolicy`: when to keep
    what is needed to feed a batch again (see `recorder.capture`). `trackers` are told of rank 0's rows as well (see
    `recorder.trackers`).

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
        capture: CapturePolicy | None = None,
        on_nonfinite: str | None = None,
        fail_on_skip_rate: float | None = None,
        fail_after: int = 100,
        rank: int | None = None,
        trackers: Sequence[Tracker] = (),
    ) -> None:
        super().__init__()
        optimizers = settings.named_optimizers(optimizer)
        schedulers = settings.per_optimizer("scheduler", scheduler, optimizers)
        scalers = settings.per_optimizer("scaler", scaler, optimizers)
        limits = settings.max_norms(max_norm, optimizers)
        ending = settings.limits(on_nonfinite, fail_on_skip_rate, fail_after)
        if not isinstance(capture, CapturePolicy | None):
            raise TypeError(f"capture takes a recorder.CapturePolicy, not {capture!r:.80}")
        watched = default() if triggers is None else settings.triggers(triggers)
        shown = settings.trackers(trackers)
        self._cadence = Cadence(deep_every, overhead_budget)
        self._model = model
        self._memory = MemoryGauge(next((p.device for p in model.parameters()), torch.device("cpu")))
        rank = settings.rank() if rank is None else rank
        manifest = describe(model, optimizers, schedulers, scalers, limits, config)
        writer = RunWriter.create(
            directory,
            manifest,
            rank=rank,
            resume=resume,
            on_error=lambda error: self.guard.report(error),
        )
        with ExitStack() as undone:
            undone.callback(writer.close)  # what fails from here on leaves a directory that can be recorded into
            self.guard = Guard(lambda text: writer.event("recorder_fault", text=text))
            self._forward = ForwardWatch(model, self.guard)
            self._watch = Watch(watched, ending, capacity, self.guard)
            self._logbook = Logbook(
                writer, self._watch, capacity, self.guard, shown if rank == 0 else (), len(optimizers) == 1
            )
            self._captures = NoCaptures()
            if capture is not None:
                states = states_of(optimizers, schedulers, scalers)
                self._captures = Captures(capture, writer, model, states, self.guard, rank)
            reduced = reduction(model)
            self._channels = {
                name: Channel(
                    name,
                    opt,
                    names=self._parameter_names,
                    reduced=reduced,
                    scaler=scalers.get(name),
                    scheduler=schedulers.get(name),
                    max_norm=limits.get(name),
                    deep_parameters=tuple(deep_parameters),
                    guard=self.guard,
                    attempting=self._attempting,
                    again=self._again,
                )
                for name, opt in optimizers.items()
            }
            for channel in self._channels.values():
                self._logbook.restore(channel)
            undone.pop_all()
        self._executed_before = {name: channel.clocks.executed for name, channel in self._channels.items()}
        self._noted: set[str] = set()
        self._step, self._micro_step = self._logbook.last_step

    @property
    def tripped(self) -> bool:
        """Whether a trigger began to trip with the last row that was read."""
        return self._watch.tripped

    @property
    def optimizers(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self._channels)

    def replace_scheduler(self, optimizer: str, scheduler: Any) -> None:
        """Follow another scheduler from here on, between two rows; what was counted stays counted."""
        channel = self._channels[optimizer]
        with self.guard:
            self._logbook.credit_scheduler(channel)
            channel.follow(scheduler)
            self.note(f"{optimizer}: {type(scheduler).__name__} is the scheduler from here on")

    def _parameter_names(self) -> dict[int, str]:
        return {id(parameter): name for name, parameter in self._model.named_parameters()}
