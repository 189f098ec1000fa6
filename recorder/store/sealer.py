"""What a table's writer leaves to a thread in the background: syncing its journal, turning full ones into parts."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from recorder.store.append_file import AppendFile
from recorder.store.errors import StoreError
from recorder.store.files import sync_directory
from recorder.store.folder import journal_path, seal, seal_journals
from recorder.store.rows import Rows
from recorder.store.unsealed import Unsealed


class Sealer:
    """Works in `background`, which has one thread. What fails there goes to `on_error`, and is tried again later.

    A journal that cannot be sealed stays where it is, readable. Where it was deleted meanwhile, its rows are held.
    """

    def __init__(self, folder: Path, background: Executor, on_error: Callable[[Exception], None]) -> None:
        self._folder = folder
        self._background = background
        self._on_error = on_error
        self._sync: Future[None] | None = None
        self._first_rows: dict[int, Any] = {}
        self._held: dict[int, Rows] = {}
        self._owes = False
        # An interrupt while the thread was being started leaves one that nobody waits for.
        self._one_at_a_time = Lock()

    def sync_soon(self, file: AppendFile) -> None:
        """Bring to the disk what is in a journal and its name, unless that is going on already."""
        if self._sync is None or self._sync.done():
            self._sync = self._later(partial(_bring_to_disk, file))

    @property
    def first_row(self) -> Any:
        """The number of the first row that is in memory here, None where none is."""
        return next(iter(self._first_rows.values()), None)

    def seal_soon(self, journal: Unsealed) -> None:
        """Turn a journal that takes no more rows into a part."""
        self._first_rows[journal.number] = journal.first_row
        self._later(partial(self._seal_in_turn, journal))

    def finish(self) -> None:
        """Seal what is left, at once. Raises what keeps a journal from being sealed. The background must be over."""
        with self._one_at_a_time:
            self._settle(below=None)

    def _seal_in_turn(self, journal: Unsealed) -> None:
        with self._one_at_a_time:
            self._seal(journal)

    def _seal(self, journal: Unsealed) -> None:
        number, rows = journal.number, journal.rows
        journal.file.close()
        try:
            if rows is not None:
                seal(self._folder, number, rows, _pause)
        except Exception:
            self._owes = True
            if rows is not None and not journal_path(self._folder, number).exists():
                self._held[number] = rows
            raise
        finally:
            if number not in self._held:
                del self._first_rows[number]
        if rows is not None:
            rows.release(_pause)
        if self._owes or rows is None:
            self._settle(below=number + 1)

    def _settle(self, below: int | None) -> None:
        """Make up for what could not be sealed when it was due."""
        for number, rows in list(self._held.items()):
            seal(self._folder, number, rows)
            del self._held[number], self._first_rows[number]
        for note in seal_journals(self._folder, below):
            self._on_error(StoreError(self._folder, note, "a copy of it is kept there as _damaged-*"))
        self._owes = False

    def _later(self, job: Callable[[], None]) -> Future[None] | None:
        try:
            return self._background.submit(self._guarded, job)
        except RuntimeError as error:  # the interpreter is shutting down; the journal holds the rows
            self._on_error(error)
            return None

    def _guarded(self, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:  # noqa: BLE001  # whatever it is, training goes on
            self._on_error(error)


def _bring_to_disk(file: AppendFile) -> None:
    file.sync()
    sync_directory(file.path.parent)


def _pause() -> None:
    """Let the training have the interpreter, for which it would wait for as long as `sys.getswitchinterval()` says."""
    time.sleep(1e-4)
