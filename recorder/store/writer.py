"""RunWriter: writes a run directory, or goes on with one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import Any

from recorder.schema import LAYERS, SCHEMA_VERSION, STEPS
from recorder.store.documents import MANIFEST, drop_torn_event, events_path, read_manifest, to_json, write_manifest
from recorder.store.errors import StoreError
from recorder.store.files import AppendFile
from recorder.store.folder import seal_journals, table_folder
from recorder.store.lock import WriterLock
from recorder.store.resume import Clocks, read_clocks
from recorder.store.table import ROLL_ROWS, Row, TableWriter


class RunWriter:
    """The rows, layers, events and manifest of one rank of a run. Made by `create`; used by one thread.

    `segment` and `next_row` are those of the first row to come; `last_rows` holds each optimizer's last row
    from before a resume, by name, and `notes` what a resume could not keep. `on_error` hears of faults in the
    background, in its thread: no row is lost by them, but a journal stays unsealed until `close`, which tries
    again and raises if it still cannot.
    """

    def __init__(
        self,
        path: Path,
        manifest: Mapping[str, Any],
        clocks: Clocks,
        notes: Sequence[str],
        rank: int,
        roll_rows: int,
        on_error: Callable[[Exception], None] | None,
        lock: WriterLock,
    ) -> None:
        self.path = path
        self.manifest = dict(manifest)
        self.segment, self.next_row, self.last_rows = clocks.segment, clocks.next_row, clocks.last_rows
        self._rank = rank
        self._lock = lock
        self._pid = os.getpid()
        self.notes = tuple(notes)
        report = on_error or _keep_quiet
        self._background = ThreadPoolExecutor(1, thread_name_prefix="recorder-store")
        self._steps = TableWriter(
            table_folder(path, "steps", rank),
            STEPS,
            self._background,
            report,
            key=("row", "optimizer"),
            roll_rows=roll_rows,
        )
        self._layers = TableWriter(
            table_folder(path, "layers", rank), LAYERS, self._background, report, roll_rows=roll_rows
        )
        self._events = AppendFile(events_path(path, rank))
        self._closed = False

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        manifest: Mapping[str, Any],
        *,
        rank: int = 0,
        resume: bool = False,
        roll_rows: int = ROLL_ROWS,
        on_error: Callable[[Exception], None] | None = None,
    ) -> RunWriter:
        """Start a run in a directory, or go on with the one that is there (`resume`; where none is, start it).

        The manifest is written by rank 0; on a resume it is merged over the old one. Raises StoreError where the
        path holds a run and `resume` is false, cannot hold one, or holds one of a newer version.
        """
        run = Path(path)
        if not str(path):
            raise StoreError("(empty)", "is no path", "name a directory for the run")
        lock: WriterLock | None = None
        try:
            existing = _existing(run, rank, resume)
            steps = table_folder(run, "steps", rank)
            steps.mkdir(parents=True, exist_ok=True)
            lock = WriterLock(run, steps)
            notes = [] if existing is None else _repair(run, rank)
            merged = {**(existing or {}), **manifest, "schema_version": SCHEMA_VERSION, "closed": False}
            if rank == 0:
                write_manifest(run, merged)
            return cls(run, merged, read_clocks(run, rank), notes, rank, roll_rows, on_error, lock)
        except (OSError, ValueError, StoreError) as error:
            if lock is not None:
                lock.release()
            if isinstance(error, StoreError):
                raise
            why = getattr(error, "strerror", None) or error
            raise StoreError(run, f"cannot be written ({why})", "choose another path for the run") from None

    def append(self, row: Row, user: Row | None = None, pending: bool = False) -> None:
        """Add a row of `steps`; it is in the journal when this returns.

        `row` gives columns by name (those left out are null), `user` further scalars, stored as `user_<name>`.
        `pending` marks a row whose values are still on the device, until it is amended. Raises KeyError,
        TypeError or ValueError for what is no row, OSError where it cannot be written; nothing else is harmed.
        """
        self._steps.append(row, user, pending)

    def amend(self, row: Row, user: Row | None = None, pending: bool = False) -> None:
        """Replace a whole row, user fields included, by one of the same `row` and `optimizer`.

        The last row and pending rows (up to `roll_rows` of them) can always be amended; KeyError where it is too
        late for another. Otherwise as `append`.
        """
        self._steps.amend(row, user, pending)

    def append_layers(self, rows: Sequence[Row]) -> None:
        """Add rows of `layers`. Raises as `append`; the rows before the faulty one are kept."""
        for row in rows:
            self._layers.append(row)

    def event(self, kind: str, **fields: Any) -> None:
        """Add one line to the events, with the time unless `time_ns` is given."""
        self._events.append(to_json({"kind": kind, "time_ns": time.time_ns(), **fields}) + b"\n")

    def update_manifest(self, **fields: Any) -> None:
        """Merge fields into the manifest and rewrite it."""
        self.manifest.update(fields)
        if self._rank == 0:
            write_manifest(self.path, self.manifest)

    def flush(self) -> None:
        """Return once everything so far is on the disk. Raises OSError where it is not."""
        self._steps.flush()
        self._layers.flush()
        self._events.sync()

    def close(self) -> None:
        """Seal everything and say so in the manifest; a second call does nothing.

        Raises StoreError where something could not be sealed. The rows then stay readable in their journals.
        """
        if self._closed or os.getpid() != self._pid:  # a forked child must not seal what its parent still writes
            return
        self._closed = True
        self._background.shutdown(wait=True)
        try:
            self._seal()
        finally:
            self._lock.release()

    def _seal(self) -> None:
        faults: list[Exception] = []
        for finish in (self._steps.close, self._layers.close, self._events.close):
            try:
                finish()
            except Exception as error:  # noqa: BLE001  # each of them gets its chance
                faults.append(error)
        if not faults:
            self.update_manifest(closed=True)
            return
        advice = "its journals hold the rows: free space or check the disk, then resume it to seal them"
        raise StoreError(self.path, f"could not be closed ({faults[0]})", advice) from faults[0]


def _existing(run: Path, rank: int, resume: bool) -> dict[str, Any] | None:
    """The manifest to go on with, or None for a new run."""
    if run.exists() and not run.is_dir():
        raise StoreError(run, "is a file, and a run needs a directory", "choose another path")
    has_manifest = (run / MANIFEST).is_file()
    occupied = has_manifest if rank == 0 else table_folder(run, "steps", rank).exists()
    if occupied and not resume:
        raise StoreError(run, "holds a run already", "pass resume=True to go on with it, or choose another path")
    if has_manifest:
        return read_manifest(run)
    if rank == 0 and any((run / table).exists() for table in ("steps", "layers")):
        raise StoreError(run, f"holds rows but no {MANIFEST}, so it cannot be gone on with", "choose another path")
    return None


def _repair(run: Path, rank: int) -> list[str]:
    """Seal what a killed writer left; what could not be kept, in one line each."""
    notes = [note for table in ("steps", "layers") for note in seal_journals(table_folder(run, table, rank))]
    drop_torn_event(events_path(run, rank))
    return notes


def _keep_quiet(error: Exception) -> None:
    """Where nobody listens, `close` tells."""
