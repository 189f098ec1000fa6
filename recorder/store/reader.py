"""Read a run directory: sealed parts and journals as one table, while it is written or after it ended."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from recorder.schema import LAYERS, STEPS
from recorder.store.documents import MANIFEST, StoredEvents, events_path, read_events, read_manifest
from recorder.store.errors import ReplacedError, StoreError
from recorder.store.folder import contents, ranks, table_folder
from recorder.store.lazy_table import LazyTable, Table, in_memory
from recorder.store.rewinds import Rewind, find_rewinds, may_go_back, told
from recorder.store.stored_table import StoredTable, unread

_NAMED = 6
_ONLY = "not shown: only rank {} is read"


@dataclass(frozen=True, eq=False)
class StoredRun:
    """What a run directory holds of one rank. Rows are in the order in which they were recorded.

    `notes` says in one line each what was left out, and what was abandoned: `rewinds` says the latter by row numbers.
    The first `unchanged` rows are as they were in the run that this one was refreshed from, unless what that held was
    gone: then this one was read `anew`.
    """

    path: Path
    rank: int
    manifest: Mapping[str, Any]
    notes: Sequence[str]
    rewinds: Sequence[Rewind]
    _steps: StoredTable
    _layers: StoredTable
    _events: StoredEvents
    unchanged: int = 0
    anew: bool = False

    @cached_property
    def table(self) -> pa.Table:
        """The columns of `recorder.schema.STEPS` and then the others, user fields as `user_*`."""
        return in_memory(self._steps.table)

    @property
    def steps(self) -> Table:
        """The same; of a run that was opened lazily a column is read when it is asked for."""
        return self._steps.table

    @property
    def layers(self) -> pa.Table:
        """The columns of `recorder.schema.LAYERS`."""
        return in_memory(self._layers.table)

    @property
    def events(self) -> Sequence[Mapping[str, Any]]:
        return self._events.said

    @property
    def pending(self) -> Sequence[int]:
        """The positions in `table` of rows whose values on the device were not copied."""
        return self._steps.pending

    def refreshed(self) -> StoredRun:
        """The run as it is now; itself where nothing is new. What was read is not read again.

        Of the rows that were there, only pending ones and the last one of each optimizer may have changed, unless
        another run was recorded in the place of this one: that is read from its start. Raises as `read_run`.
        """
        manifest = read_manifest(self.path)
        try:
            return self._refreshed(manifest)
        except ReplacedError:
            lazily = isinstance(self.steps, LazyTable)
            return replace(read_run(self.path, self._steps.wanted, self.rank, lazily=lazily), anew=True)

    def _refreshed(self, manifest: Mapping[str, Any]) -> StoredRun:
        # What is written first is read last, so that it is there with whatever was written after it; the manifest is
        # the exception: that a run is closed must not be known of rows that were read before.
        found = ranks(self.path)
        if found and self.rank not in found:
            raise StoreError(
                self.path, f"holds no rank {self.rank}, but {name_ranks(found)}", "choose one that is there"
            )
        steps, layers = self._steps.refreshed(), self._layers.refreshed()
        events = read_events(events_path(self.path, self.rank), self._events)
        same = steps is self._steps and events is self._events
        unchanged = steps.table.num_rows if steps is self._steps else steps.unchanged
        rewinds = self.rewinds
        if not same and may_go_back(steps.table, unchanged, events.said):
            rewinds = find_rewinds(steps.table, events.said)
        notes = [*_others(found, self.rank), *steps.notes, *layers.notes, *events.notes]
        notes += [*_pending(len(steps.pending), manifest), *told(rewinds)]
        new = replace(
            self,
            manifest=manifest,
            notes=tuple(dict.fromkeys(notes)),
            rewinds=rewinds,
            _steps=steps,
            _layers=layers,
            _events=events,
            unchanged=unchanged,
            anew=False,
        )
        same = same and layers is self._layers and new.manifest == self.manifest and new.notes == self.notes
        return self if same else new


def is_run(path: str | PathLike[str]) -> bool:
    """Whether a directory is a run: it holds a manifest."""
    return os.path.isfile(Path(path) / MANIFEST)  # noqa: PTH113  # false, too, for what is no path at all


def read_run(
    path: str | PathLike[str], columns: Sequence[str] | None = None, rank: int | None = None, *, lazily: bool = False
) -> StoredRun:
    """Read one rank of a run (None: the first that has rows); of `steps` only these columns, where given.

    A run that is being written gives a prefix of its rows. A run without rows gives empty tables. Raises
    StoreError, whose text is one line, for anything that is not a run or is damaged. Where it is opened `lazily`, a
    column of the sealed parts is read when `steps` is asked for it, and what is damaged in it is found then.
    """
    run = Path(path)
    manifest = read_manifest(run)
    rank = first_with_rows(run) if rank is None else rank
    steps = unread(table_folder(run, "steps", rank), STEPS, columns, lazily)
    layers = unread(table_folder(run, "layers", rank), LAYERS)
    return StoredRun(run, rank, manifest, (), (), steps, layers, StoredEvents())._refreshed(manifest)


def first_with_rows(run: Path) -> int:
    """The rank that is read where none is named."""
    found = ranks(run)
    with_rows = (rank for rank in found if contents(table_folder(run, "steps", rank)).numbers)
    return next(with_rows, found[0] if found else 0)


def _pending(count: int, manifest: Mapping[str, Any]) -> list[str]:
    if not count:
        return []
    why = "were never copied: the run ended first" if manifest.get("closed") else "are not copied yet, or never were"
    return [f"the values on the device of {count:,} {'row' if count == 1 else 'rows'} {why}"]


def without_others(notes: Sequence[str], rank: int) -> tuple[str, ...]:
    """The notes less the one that other ranks are not shown, for who shows them."""
    return tuple(note for note in notes if not note.endswith(_ONLY.format(rank)))


def _others(found: Sequence[int], rank: int) -> list[str]:
    others = [other for other in found if other != rank]
    verb = "is" if len(others) == 1 else "are"
    return [f"{name_ranks(others)} {verb} {_ONLY.format(rank)}"] if others else []


def name_ranks(numbers: Sequence[int]) -> str:
    """`rank 1`, `ranks 1, 2, 3`, `ranks 1 to 1023`, `ranks 0, 2, 4, 6, 8, 10 and 506 more`."""
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    if len(numbers) > _NAMED and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"ranks {numbers[0]} to {numbers[-1]}"
    more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
    return f"ranks {', '.join(map(str, numbers[:_NAMED]))}{more}"
