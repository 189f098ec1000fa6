"""RunWriter: writes a run directory, or goes on with one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from recorder.schema import LAYERS, SCHEMA_VERSION, STEPS, Column
from recorder.store.begin import made_ready, manifest_to_go_on_with
from recorder.store.documents import events_path, read_events, write_manifest
from recorder.store.errors import StoreError
from recorder.store.folder import table_folder
from recorder.store.home import Home
from recorder.store.lock import WriterLock
from recorder.store.lost import LostRows
from recorder.store.resume import Clocks, read_clocks
from recorder.store.shapes import Row
from recorder.store.table import ROLL_ROWS, TableWriter


class RunWriter:
    """The rows, layers, events and manifest of one rank of a run. Made by `create`; used by one thread.

    `segment` and `next_row` are those of the first row to come; `last_rows` holds each optimizer's last row
    from before a resume, by name, and `notes` what a resume could not keep.

    Where the disk takes nothing, or the directory is gone, rows wait in memory and go on in it as soon as it is there
    again; an event then says what became of them. `on_error` hears of such faults, in whichever thread they are met.
    """

    def __init__(
        self,
        home: Home,
        clocks: Clocks,
        notes: Sequence[str],
        rank: int,
        roll_rows: int,
        on_error: Callable[[Exception], None] | None,
        lock: WriterLock,
    ) -> None:
        self.path = home.path
        self.segment, self.next_row, self.last_rows = clocks.segment, clocks.next_row, clocks.last_rows
        self.notes = tuple(notes)
        self._home = home
        self._rank = rank
        self._lock = lock
        self._pid = os.getpid()
        self._report = on_error or _keep_quiet
        self._background = ThreadPoolExecutor(1, thread_name_prefix="recorder-store")
        self._steps = self._table("steps", STEPS, roll_rows, key=("row", "optimizer"))
        self._layers = self._table("layers", LAYERS, roll_rows)
        home.first_kept = lambda: self._steps.first_in_memory(self.next_row)
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

        What ended before its first row is no run yet: another begins in its place. The manifest is written by rank 0;
        on a resume it is merged over the old one. Raises StoreError where the path holds a run and `resume` is false,
        cannot hold one, or holds one of a newer version.
        """
        run = Path(path)
        if not str(path):
            raise StoreError("(empty)", "is no path", "name a directory for the run")
        lock: WriterLock | None = None
        try:
            existing = manifest_to_go_on_with(run, rank, resume)
            steps = table_folder(run, "steps", rank)
            steps.mkdir(parents=True, exist_ok=True)
            lock = WriterLock(run, steps)
            notes = made_ready(run, rank, resume)
            merged = {**(existing or {}), **manifest, "schema_version": SCHEMA_VERSION, "closed": False}
            if rank == 0:
                write_manifest(run, merged)
            home = Home(run, rank, merged, lock)
            return cls(home, read_clocks(run, rank), notes, rank, roll_rows, on_error, lock)
        except (OSError, ValueError, StoreError) as error:
            if lock is not None:
                lock.release()
            if isinstance(error, StoreError):
                raise
            why = getattr(error, "strerror", None) or error
            raise StoreError(run, f"cannot be written ({why})", "choose another path for the run") from None

    def append(self, row: Row, user: Row | None = None, pending: bool = False) -> None:
        """Add a row of `steps`; it is in the journal when this returns, or waits for the disk to take it.

        `row` gives columns by name (those left out are null), `user` further scalars, stored as `user_<name>`.
        `pending` marks a row whose values are still on the device, until it is amended. Raises KeyError,
        TypeError or ValueError for what is no row, OSError where it can be neither written nor held in memory; nothing
        else is harmed.
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
        self._home.event(kind, **fields)

    def events(self) -> tuple[dict[str, Any], ...]:
        """The events of this rank so far. Raises OSError where they are not all on the disk."""
        self._home.flush()
        return read_events(events_path(self.path, self._rank)).said

    @property
    def manifest(self) -> dict[str, Any]:
        """What the manifest holds."""
        return self._home.manifest

    def update_manifest(self, **fields: Any) -> None:
        """Merge fields into the manifest and rewrite it. Where that raises, the next update writes them."""
        self._home.update_manifest(**fields)

    def flush(self) -> None:
        """Return once everything so far is on the disk. Raises OSError where it is not."""
        self._steps.flush()
        self._layers.flush()
        self._home.flush()

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
        for finish in (self._steps.close, self._layers.close, self._home.close):
            try:
                finish()
            except Exception as error:  # noqa: BLE001  # each of them gets its chance
                faults.append(error)
        try:
            if faults:
                raise faults[0]
            self.update_manifest(closed=True, last_row=self._steps.first_in_memory(self.next_row) - 1)
        except Exception as error:
            advice = "its journals hold the rows: free space or check the disk, then resume it to seal them"
            lost = self._steps.unwritten
            if lost:
                advice = f"the last {lost} rows could not be written and are lost, the rows before are in its journals"
            raise StoreError(self.path, f"could not be closed ({error})", advice) from error

    def _table(self, name: str, columns: Sequence[Column], roll_rows: int, key: tuple[str, ...] = ()) -> TableWriter:
        return TableWriter(
            table_folder(self.path, name, self._rank),
            columns,
            self._background,
            on_error=self._report,
            make_anew=self._home.make_anew,
            on_recovery=partial(self._tell_recovery, name),
            key=key,
            roll_rows=roll_rows,
        )

    def _tell_recovery(self, table: str, waited: int, lost: LostRows) -> None:
        try:
            self._home.tell_recovery(table, waited, lost)
        except (OSError, StoreError) as error:
            self._report(error)


def _keep_quiet(error: Exception) -> None:
    """Where nobody listens, `close` tells."""
