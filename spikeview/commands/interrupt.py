"""Ctrl-C: the end of the process, at once and without a word."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from spikeview.commands.status import INTERRUPTED


def leave_at_once() -> None:
    """From now on. As an exception it would be told of at length by whatever import it falls into."""
    signal.signal(signal.SIGINT, _leave)


@contextmanager
def unwinding() -> Iterator[None]:
    """Meanwhile Ctrl-C is an exception again: what is half done is undone."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
