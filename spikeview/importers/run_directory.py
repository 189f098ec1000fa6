"""The run directory that the recorder writes."""

from __future__ import annotations

from pathlib import Path

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
    return Run(str(path), stored.table, stored.manifest, stored.events, stored.layers, stored.notes, stored.rank)
