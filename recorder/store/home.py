"""The directory of a run as its writer keeps it: locked, with its manifest and its events, and there."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Any

from recorder.store.append_file import AppendFile
from recorder.store.documents import MANIFEST, events_path, read_manifest, to_json, write_manifest
from recorder.store.errors import StoreError
from recorder.store.folder import contents, table_folder
from recorder.store.lock import WriterLock
from recorder.store.lost import LostRows

RESUMED = "recording_resumed"


class Home:
    """Keeps the manifest (of rank 0) and the events, from any thread.

    Where the directory was deleted or moved away, `make_anew` brings it back. `first_kept` gives the number of the
    first row that is still in memory then.
    """

    def __init__(self, path: Path, rank: int, manifest: Mapping[str, Any], lock: WriterLock) -> None:
        self.path = path
        self.manifest = dict(manifest)
        self._rank = rank
        self._lock = lock
        self._events: AppendFile | None = AppendFile(events_path(path, rank))
        self._one_at_a_time = RLock()
        self._is_half_made = False
        self.first_kept: Callable[[], int] = int

    def event(self, kind: str, **fields: Any) -> None:
        """Add one line to the events. Raises ValueError where they are closed."""
        line = to_json({"kind": kind, "time_ns": time.time_ns(), **fields}) + b"\n"
        with self._one_at_a_time:
            if self._events is None:
                raise ValueError(f"{self.path} is closed; create the run again with resume=True to go on")
            if not self._events.is_in_place():
                with suppress(OSError, StoreError):
                    self.make_anew()
                    self._events.reopen()
            self._events.append(line)

    def update_manifest(self, **fields: Any) -> None:
        """Merge fields into the manifest and rewrite it. Where that raises, the next update writes them."""
        self.manifest.update(fields)
        self.make_anew()
        self._write_manifest()

    def make_anew(self) -> None:
        """Bring the directory back where it is gone. Raises OSError or StoreError where it cannot be."""
        if self._lock.is_in_place() and not self._is_half_made:
            return
        with self._one_at_a_time:
            if self._rank == 0 and self._is_another_run():
                raise StoreError(self.path, "was deleted and holds another run now", "record into another directory")
            self._is_half_made = True
            steps = table_folder(self.path, "steps", self._rank)
            steps.mkdir(parents=True, exist_ok=True)
            self._lock.renew()
            self._write_manifest()
            self._is_half_made = False
            sealed = 0 if contents(steps).parts else self.first_kept()
            gone = f"rows 0 to {sealed - 1} are not in it" if sealed else "no row is missing"
            text = f"the directory was deleted or moved away while it was recorded, and was made anew: {gone}"
            self.event(RESUMED, text=text, **({"first_row": 0, "last_row": sealed - 1} if sealed else {}))

    def tell_recovery(self, table: str, waited: int, lost: LostRows) -> None:
        """Say what became of rows that the disk did not take at once. Raises as `update_manifest`."""
        rows = {"first_row": lost.first, "last_row": lost.last} if lost.count else {}
        text = f"the disk takes rows of {table} again: {waited} had to wait, {lost}"
        self.event(RESUMED, table=table, text=text, lost=lost.count, **rows)
        self.update_manifest()  # which the disk may not have taken either

    def flush(self) -> None:
        """Return once all events are on the disk. Raises OSError where they are not."""
        if self._events is not None:
            self._events.drain()
            self._events.sync()

    def close(self) -> None:
        """No more events. Raises OSError where some could not be written."""
        with self._one_at_a_time:
            events, self._events = self._events, None
        if events is not None:
            try:
                events.drain()
            finally:
                events.close()

    def _write_manifest(self) -> None:
        if self._rank == 0:
            write_manifest(self.path, self.manifest)

    def _is_another_run(self) -> bool:
        """Whether what lies there now began at another time."""
        there = (self.path / MANIFEST).exists()
        return there and read_manifest(self.path).get("created") != self.manifest.get("created")
