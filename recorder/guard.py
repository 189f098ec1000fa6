"""The recorder's promise never to end a run through a fault of its own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

_MOST_NOTES = 32


def describe_error(error: BaseException) -> str:
    """Its type and text; an exception whose text cannot be made is described by its type alone."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  # any __str__ may raise anything
        return type(error).__name__


class Guard:
    """Wraps the recorder's own work: a fault in it is warned about once, told to `note`, and training goes on.

    Only the recorder's own work may stand inside; what the loop asked for (unscaling, clipping, stepping) stands
    outside, so that the loop's exceptions pass untouched.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._told: set[str] = set()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        self.report(error)
        return True

    def report(self, error: Exception) -> None:
        text = describe_error(error)
        if text in self._told or len(self._told) >= _MOST_NOTES:
            return
        first = not self._told
        self._told.add(text)
        # Neither the warning (an error under -W error) nor the note (the disk may be full) may end the training.
        with suppress(Exception):
            self._note(text)
        if first:
            with suppress(Exception):
                warnings.warn(
                    f"the flight recorder met a fault of its own and training goes on ({text}); "
                    "further faults are only noted in the run's events.jsonl",
                    RuntimeWarning,
                    stacklevel=3,
                )
