"""The run directory that the recorder writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from recorder.store import StoredRun, StoreError, is_run, read_run
from recorder.store.lazy_table import LazyTable, Table
from spikeview.importers.captures import captures_of
from spikeview.importers.errors import RunError
from spikeview.run import Run

recognises = is_run


def read(path: Path, rank: int | None = None, lazily: bool = False) -> Run:
    """One rank of a run directory. Raises RunError where it is damaged, newer than this version, or no run.

    Where it is read `lazily`, whoever asks for a column is told so of damage in it.
    """
    try:
        return _run(str(path), read_run(path, rank=rank, lazily=lazily))
    except StoreError as error:
        raise RunError(str(error)) from error


def _run(path: str, stored: StoredRun) -> Run:
    return Run(
        path,
        _blaming(stored.steps),
        stored.manifest,
        stored.events,
        stored.layers,
        (*stored.notes, *_ending(stored.events, stored.steps)),
        stored.rank,
        stored.rewinds,
        captures_of(Path(path), stored.rank),
        source=partial(_later, stored),
    )


def _later(stored: StoredRun, run: Run) -> Run:
    """The run as it is now. Raises RunError as `read`."""
    try:
        newer = stored.refreshed()
    except StoreError as error:
        raise RunError(str(error)) from error
    if newer is stored and captures_of(Path(run.path), stored.rank) == run.captures:
        return run
    found = _run(run.path, newer)
    return found if newer.anew else found.succeeding(run, len(run) if newer is stored else newer.unchanged)


def _blaming(table: Table) -> Table:
    return replace(table, blamed=lambda error: RunError(str(error))) if isinstance(table, LazyTable) else table


def _ending(events: Sequence[Mapping[str, Any]], table: Table) -> list[str]:
    """That the run's last word was an exception: a loop that catches one goes on."""
    last = events[-1] if events else {}
    if last.get("kind") != "exception" or _goes_on(table, last.get("row")):
        return []
    return [f"the run ended with {last.get('text')}, after row {last.get('row')}"]


def _goes_on(table: Table, row: object) -> bool:
    latest = pc.max(table["row"]).as_py() if table.num_rows else None
    return isinstance(row, int) and latest is not None and latest > row
