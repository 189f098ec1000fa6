"""TableWriter: rows go to a journal at once, and roll into sealed parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from operator import itemgetter
from pathlib import Path

from recorder.schema import Column
from recorder.store.files import AppendFile
from recorder.store.folder import contents, journal_path, seal, seal_journals
from recorder.store.journal import create_journal, encode
from recorder.store.layout import Layout
from recorder.store.rows import Rows

ROLL_ROWS = 65_536
SYNC_EVERY = 256
CHECK_EVERY = 32
RECENT = 1024

Row = Mapping[str, object]


class TableWriter:
    """One table of one rank. Used by one thread; `background` (one worker) syncs and seals for it.

    `key` names the columns that identify a row, `row` the first of them; without a key rows cannot be amended.
    A fault in the background goes to `on_error`; the journal then stays, and is sealed at `close`.
    """

    def __init__(
        self,
        folder: Path,
        columns: Sequence[Column],
        background: Executor,
        on_error: Callable[[Exception], None],
        *,
        key: tuple[str, ...] = (),
        roll_rows: int = ROLL_ROWS,
    ) -> None:
        self.folder = folder
        self._background = background
        self._on_error = on_error
        self._key = itemgetter(*key) if key else None
        self._roll_rows = roll_rows
        self._layout = Layout.of(columns)
        self._number = max(contents(folder).numbers, default=-1)
        self._file: AppendFile | None = None
        self._sync: Future[None] | None = None
        self._last: object = None
        self._closed = False
        self._start()

    def append(self, row: Row, user: Row | None = None, pending: bool = False) -> None:
        """Add a row. Rows of one number stay together, and numbers never fall where the table has a key.

        Raises KeyError, TypeError or ValueError for what is no row of this table and OSError where it cannot be
        written; the table is then as it was before.
        """
        number = row["row"]
        if len(self._rows) >= self._roll_rows and number != self._last and self._may_roll():
            self._roll()
        key = self._key(row) if self._key else None
        if key is not None:
            self._check_new(row, key)
        position = len(self._rows)
        self._write(position, row, user, pending)
        self._last = number
        if key is not None:
            self._remember(key, position)

    def amend(self, row: Row, user: Row | None = None, pending: bool = False) -> None:
        """Replace a whole row of this key, user fields included. Raises as `append`.

        Only a recent row that is not sealed yet can be: the last row and pending rows always are.
        """
        key = self._key(row) if self._key else None
        if key not in self._positions:
            raise KeyError(f"row {key} is not among the rows that can still be amended")
        self._write(self._positions[key], row, user, pending)

    def flush(self) -> None:
        """Return once every row appended so far is on the disk."""
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        """Seal everything. Raises what keeps a journal from being sealed; its rows stay readable.

        The background must have come to an end.
        """
        file, rows = self._file, self._rows
        self._file, self._closed = None, True
        if file is not None:
            file.close()
            if len(rows):
                seal(self.folder, self._number, rows)
            self._start()
        for _ in seal_journals(self.folder):
            pass

    def _start(self) -> None:
        self._rows = Rows(self._layout)
        self._positions: dict[object, int] = {}
        self._pending: set[int] = set()
        self._unsynced = 0

    def _may_roll(self) -> bool:
        # A pending row must stay within reach of its amendment, but not for ever: a lost one must not grow memory.
        return not self._pending or len(self._rows) >= 2 * self._roll_rows

    def _check_new(self, row: Row, key: object) -> None:
        if key in self._positions:
            raise ValueError(f"row {key} is recorded already; amend it")
        number, last = row["row"], self._last
        if isinstance(number, int) and isinstance(last, int) and number < last:
            raise ValueError(f"row {number} cannot follow row {last}")

    def _remember(self, key: object, position: int) -> None:
        # Few of them, because freeing 65,536 keys at once would stop the training for milliseconds.
        self._positions[key] = position
        if len(self._positions) > 2 * RECENT + len(self._pending):
            oldest = position - RECENT
            kept = {key: place for key, place in self._positions.items() if place > oldest or place in self._pending}
            self._positions = kept

    def _write(self, position: int, row: Row, user: Row | None, pending: bool) -> None:
        record = self._rows.record(position, row, user, pending)
        file = self._file or self._open()
        file.append(encode(record))
        if position % CHECK_EVERY == 0:
            file.check()
        self._rows.put(record)
        if pending:
            self._pending.add(position)
        elif self._pending:
            self._pending.discard(position)
        self._unsynced += 1
        if self._unsynced >= SYNC_EVERY:
            self._sync_soon(file)

    def _open(self) -> AppendFile:
        if self._closed:
            raise ValueError(f"{self.folder} is closed; create the run again with resume=True to go on")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._file = create_journal(journal_path(self.folder, self._number + 1), self._layout)
        self._number += 1
        return self._file

    def _roll(self) -> None:
        full, file, number = self._rows, self._file, self._number
        assert file is not None
        try:
            self._open()
        except OSError as error:  # the journal in use goes on growing, and the next row tries again
            self._on_error(error)
            return
        self._start()
        self._later(partial(_seal_full, self.folder, number, full, file))

    def _sync_soon(self, file: AppendFile) -> None:
        self._unsynced = 0
        if self._sync is None or self._sync.done():
            self._sync = self._later(file.sync)

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


def _seal_full(folder: Path, number: int, rows: Rows, file: AppendFile) -> None:
    file.close()
    seal(folder, number, rows)
