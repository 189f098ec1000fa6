"""Tells trackers of rows from a thread of its own: a slow or broken one costs the training nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Thread
from time import monotonic
from typing import Any

from recorder.guard import describe_error
from recorder.trackers import Told, Tracker, told

_WAITING = 1000
_AT_ONCE = 50
_SECONDS_AT_THE_END = 10.0


class Telling:
    """One tracker, told of some rows. What it does not take in time is left out; what it raises ends the telling.

    `fault` is called with what ended it, `note` with a line on what was left out.
    """

    def __init__(
        self, tracker: Tracker, run: str, fault: Callable[[Exception], None], note: Callable[[str], None]
    ) -> None:
        self._tracker = tracker
        self._run = run
        self._fault = fault
        self._note = note
        self._waiting: Queue[Told | None] = Queue(_WAITING)
        self._left_out = 0
        self._is_over = False
        self._thread = Thread(target=self._tell, name="recorder-tracker", daemon=True)
        self._thread.start()

    def row(self, columns: Mapping[str, Any], alone: bool, trigger: str | None) -> None:
        """Have a row told, if it is one of those that are."""
        if self._is_over or (trigger is None and columns["row"] % self._tracker.every):
            return
        try:
            self._waiting.put_nowait(told(columns, alone, trigger))
        except Full:
            self._left_out += 1

    def close(self) -> None:
        """Return when all is told, or when that takes too long."""
        deadline = monotonic() + _SECONDS_AT_THE_END
        with suppress(Full):
            self._waiting.put(None, timeout=_SECONDS_AT_THE_END if self._thread.is_alive() else 0)
            self._thread.join(max(0.0, deadline - monotonic()))
        name = type(self._tracker).__name__
        if self._thread.is_alive():
            self._note(f"{name} did not take its rows in {_SECONDS_AT_THE_END:.0f} s: the rest is left out of it")
        elif self._left_out:
            self._note(f"{name} was slower than the training: {self._left_out:,} rows are left out of it")

    def _tell(self) -> None:
        try:
            self._tracker.begin(self._run)
            while (rows := self._next()) is not None:
                self._tracker.tell(rows)
            self._tracker.close()
        except BaseException as error:  # noqa: BLE001  # a tracker may raise anything, SystemExit too
            self._is_over = True
            what = f"{type(self._tracker).__name__} is told no more ({describe_error(error)})"
            self._fault(RuntimeError(what))

    def _next(self) -> Sequence[Told] | None:
        """Those that wait, at least one; None at the end."""
        rows = [self._waiting.get()]
        while len(rows) < _AT_ONCE and rows[-1] is not None:
            try:
                rows.append(self._waiting.get_nowait())
            except Empty:
                break
        if rows[-1] is None:
            self._waiting.put(None)
            rows.pop()
        return [row for row in rows if row is not None] or None
