"""What the window says where a run cannot be opened: what, why, and what to do."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from spikeview.importers import RunError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Failure:
    """Three lines: what could not be done, why, and what to do about it."""

    title: str
    reason: str
    advice: str


def explain(path: str, error: Exception) -> Failure:
    """A refused input speaks for itself; anything else is a fault of our own and is logged with its trace."""
    if isinstance(error, RunError):
        reason, _, advice = str(error).partition("; ")
        return Failure("This cannot be opened", reason, advice[:1].upper() + advice[1:])
    log.error("spikeview failed on %s", path, exc_info=error)
    reason = f"{path}: {type(error).__name__}: {error}"
    return Failure(
        "spikeview failed on this run", reason, "A fault of its own, not of the run: the trace is on the terminal."
    )
