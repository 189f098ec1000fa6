"""The run directory that the recorder writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recorder.store import StoreError, is_run, read_run
from spikeview.importers.errors import RunError
from spikeview.run import Run

recognises = is_run


def read(path: Path, rank: int | None = None) -> Run:
    """One rank of a run directory. Raises RunError where it is damaged, newer than this version, or no run."""
    try:
        stored = read_run(path, rank=rank)
    except StoreError as error:
        raise RunError(str(error)) from error
    notes = (*stored.notes, *_ending(stored.events))
    return Run(str(path), stored.table, stored.manifest, stored.events, stored.layers, notes, stored.rank)


def _ending(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """That the run's last word was an exception."""
    last = events[-1] if events else {}
    if last.get("kind") != "exception":
        return []
    return [f"the run ended with {last.get('text')}, after row {last.get('row')}"]
