"""The part of the recorder's face that closes transitions, and the run."""

from __future__ import annotations

import os
from collections.abc import Callable
from operator import attrgetter
from time import perf_counter
from types import TracebackType
from typing import Any, Self

from recorder.capturing import Capturing
from recorder.channel import Channel
from recorder.deep import Cadence, ForwardReadings, ForwardWatch
from recorder.guard import describe_error
from recorder.memory import MemoryGauge
from recorder.watch import Watch

_ROW = attrgetter("row")


class Closing(Capturing):
    """Has finished rows written, and seals the run."""

    _cadence: Cadence
    _forward: ForwardWatch
    _memory: MemoryGauge
    _watch: Watch

    def __init__(self) -> None:
        # A forked child has the recorder, but not the run.
        self._pid = os.getpid()
        self._finished = []
        self._open = self._closed = False
        self._started = 0.0
        self._known: tuple[bool, ...] = ()
        self._told: BaseException | None = None
        self._let_go: list[Callable[[], object]] = []

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
                if self._captures.wanted:
                    self._consider(channel)
                self._finish(channel, forward)
            finished, self._finished = self._finished, []
            for entry in sorted(finished, key=_ROW):
                with self.guard:
                    self._logbook.write(entry)
            self._tell_cadence()
        if error is not None:
            self._tell_exception(error)
        elif self._watch.ending is not None:
            self._end_run()

    def when_closed(self, call: Callable[[], object]) -> None:
        """Have something called as the first thing that `close()` does."""
        self._let_go.append(call)

    def close(self) -> None:
        """Close what is open, seal the run and let go of the optimizers. May be called twice."""
        if self._closed or os.getpid() != self._pid:
            return
        for call in self._let_go:
            with self.guard:
                call()
        self.end()
        self._closed = True
        for channel in self._channels.values():
            channel.detach()
        with self.guard:
            for channel in self._channels.values():
                self._logbook.credit_scheduler(channel)
            self._captures.close()
            self._logbook.close(**self._learned())
            self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._tell_exception(error)
        self.close()

    def _finish(self, channel: Channel, forward: ForwardReadings | None = None) -> None:
        row, channel.row = channel.row, None
        if row is None:
            return
        row.forward = forward
        row.values["precision"] = self._forward.precision
        row.values["memory_bytes"] = self._memory.read()
        self._finished.append(self._logbook.finish(channel, row))

    def _tell_cadence(self) -> None:
        deep = [channel.deep_seconds for channel in self._channels.values() if channel.is_deep]
        seconds = perf_counter() - self._started
        self._cadence.ran(self._logbook.row - 1, seconds, sum(deep) + self._forward.seconds if deep else None)
        known = (self._cadence.cost is not None, *[bool(c.gradient_dtypes) for c in self._channels.values()])
        if known != self._known:
            # A killed run should say what became known, too; close() tells the last of it.
            self._known = known
            self._logbook.update_manifest(**self._learned())

    def _learned(self) -> dict[str, Any]:
        """What the manifest holds that only the run itself could tell."""
        dtypes = {name: channel.gradient_dtypes for name, channel in self._channels.items()}
        return {"deep": self._cadence.describe(), "gradient_dtypes": dtypes}

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

    def _precision(self) -> str | None:
        return self._forward.precision
