"""Work that nobody waits for any more ends at the next of its checkpoints, in the thread it runs in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_work = threading.local()


class Cancelled(BaseException):
    """Raised by a checkpoint. No Exception, so that nothing takes it for a fault and goes on."""


@contextmanager
def cancellable(cancelled: Callable[[], bool]) -> Iterator[None]:
    """Within it the checkpoints of this thread raise Cancelled once `cancelled()` is true."""
    before = getattr(_work, "cancelled", None)
    _work.cancelled = cancelled
    try:
        yield
    finally:
        _work.cancelled = before


def checkpoint() -> None:
    """A place where work may end: no file is half written here, no cache half filled. Costs 0.1 us."""
    cancelled = getattr(_work, "cancelled", None)
    if cancelled is not None and cancelled():
        raise Cancelled
