"""Which rows of a run were captured, and what came of feeding them again, in a few words."""

from __future__ import annotations

from spikeview.captured import Capture
from spikeview.format import printable
from spikeview.run import Run


def captures_of(run: Run) -> dict[int, str]:
    """By row number: how to feed it again, and of a row that was fed again what came of it."""
    return {each.row: printable(_told(each)) for each in run.captures}


def _told(capture: Capture) -> str:
    if capture.replay is not None:
        return f"replayed: {capture.replay.summary}"
    return "captured" if capture.command is None else f"captured; to feed it again: {capture.command}"
