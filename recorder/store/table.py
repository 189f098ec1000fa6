"""TableWriter: rows go to a journal at once, and roll into sealed parts."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from time import monotonic_ns
from typing import Any

from recorder.schema import Column
from recorder.store.errors import StoreError
from recorder.store.folder import contents, journal_path, seal
from recorder.store.journal import create_journal
from recorder.store.layout import Layout
from recorder.store.lost import LostRows
from recorder.store.sealer import Sealer
from recorder.store.shapes import Row, Shapes
from recorder.store.unsealed import Unsealed

ROLL_ROWS = 65_536
MOST_ROWS = 4 * ROLL_ROWS
MOST_BYTES = 64 * 2**20
LOOK_NS = 1_000_000_000
_NEVER = 2**62
# What is wrong with one file while another may take rows.
_SPOILT = {errno.ENOENT, errno.EFBIG, errno.ESTALE, errno.EBADF, errno.EIO}


class TableWriter:
    """One table of one rank. Used by one thread; `background` (one worker) syncs and seals for it.

    `key` names the columns that identify a row, `row` the first of them; without a key rows cannot be amended.

    Rows that the disk does not take wait in memory. Where the journal was deleted or takes no more, the rows that are
    still in memory go on in another one, once `make_anew` has brought the directory back. `on_error` hears of faults,
    in whichever thread they are met, and `on_recovery` of their end, with how many rows had to wait and which are lost.
    `unwritten` is how many rows a `close` that raised could not bring to the disk.
    """

    def __init__(
        self,
        folder: Path,
        columns: Sequence[Column],
        background: Executor,
        on_error: Callable[[Exception], None],
        make_anew: Callable[[], None],
        on_recovery: Callable[[int, LostRows], None],
        *,
        key: tuple[str, ...] = (),
        roll_rows: int = ROLL_ROWS,
    ) -> None:
        self.folder = folder
        self.unwritten = 0
        self._on_error = on_error
        self._make_anew = make_anew
        self._on_recovery = on_recovery
        self._sealer = Sealer(folder, background, on_error)
        self._key = itemgetter(*key) if key else None
        self._shapes = Shapes(Layout.of(columns))
        self._last_number = max(contents(folder).numbers, default=-1)
        self._journal: Unsealed | None = None
        self._last_row: Any = None
        self._lost = LostRows()
        self._roll_rows = self._roll_at = roll_rows
        self._most = _NEVER
        self._look_at = 0
        self._closed = False

    def first_in_memory(self, otherwise: int) -> int:
        """The number of the first row that is in memory still, the next one's where none is; `otherwise` before any."""
        first = None if self._journal is None else self._journal.first_row
        held = (self._sealer.first_row, first, None if self._last_row is None else self._last_row + 1)
        return int(next((row for row in held if row is not None), otherwise))

    def append(self, row: Row, user: Row | None = None, pending: bool = False) -> None:
        """Add a row. Rows of one number stay together, and numbers never fall where the table has a key.

        Raises KeyError, TypeError or ValueError for what is no row of this table and OSError where it cannot be
        kept, not even in memory; the table is then as it was before.
        """
        number = row["row"]
        journal = self._journal
        if journal is None:
            journal = self._first(number)
        elif number != self._last_row:
            if monotonic_ns() >= self._look_at:
                self._look(journal)
            if journal.count >= self._roll_at and self._may_roll(journal):
                journal = self._roll(journal)
        key = self._key(row) if self._key else None
        if key is not None:
            journal.recent.check_new(key, self._last_row)
        try:
            if journal.count >= self._most:
                raise OSError(errno.ENOBUFS, "too many rows wait in memory already")
            journal.add(key, row, user, pending)
        except OSError:
            self._lost.add(number)
            raise
        self._last_row = number

    def amend(self, row: Row, user: Row | None = None, pending: bool = False) -> None:
        """Replace a whole row of this key, user fields included. Raises as `append`.

        Only a recent row that is not sealed yet can be: the last row and pending rows always are.
        """
        key = self._key(row) if self._key else None
        if self._journal is None:
            raise KeyError(f"row {key} is not among the rows that can still be amended")
        self._journal.write(self._journal.recent.position(key), row, user, pending)

    def flush(self) -> None:
        """Return once every row appended so far is on the disk. Raises OSError where it is not."""
        if self._journal is not None:
            file = self._journal.file
            file.drain()
            file.sync()
            if file.trouble is not None:
                raise file.trouble

    def close(self) -> None:
        """Seal everything. Raises what keeps a journal from being sealed. The background must have come to an end."""
        journal, self._journal, self._closed = self._journal, None, True
        if journal is not None:
            self._seal_now(journal)
        self._sealer.finish()
        if journal is not None:
            self._tell_recovery(journal)

    def _seal_now(self, journal: Unsealed) -> None:
        file = journal.file
        if file.is_in_place():
            with suppress(OSError):
                file.drain()
            self.unwritten = file.waiting
        else:
            self.unwritten = journal.count
            self._make_anew()
        file.close()
        if journal.rows is not None and journal.count:
            seal(self.folder, journal.number, journal.rows)
            self.unwritten = 0

    def _begun(self) -> Unsealed:
        """A new journal. Raises OSError or StoreError where it cannot be made."""
        if self._closed:
            raise ValueError(f"{self.folder} is closed; create the run again with resume=True to go on")
        self._make_anew()
        self.folder.mkdir(parents=True, exist_ok=True)
        number = 1 + (self._last_number if self._journal is None else self._journal.number)
        file = create_journal(journal_path(self.folder, number), self._shapes.layout)
        return Unsealed(number, file, self._shapes)

    def _first(self, number: object) -> Unsealed:
        try:
            self._journal = self._begun()
        except (OSError, StoreError):
            self._lost.add(number)
            raise
        self._look_at = monotonic_ns() + LOOK_NS
        return self._journal

    def _may_roll(self, journal: Unsealed) -> bool:
        # A pending row must stay within reach of its amendment, but not for ever: a lost one must not grow memory.
        return not journal.recent.pending or journal.count >= 2 * self._roll_rows

    def _roll(self, full: Unsealed) -> Unsealed:
        """Go on in another journal, and let this one become a part."""
        try:
            self._journal = begun = self._begun()
        except (OSError, StoreError) as error:  # this journal goes on growing, until the next look
            self._roll_at = _NEVER
            self._on_error(error)
            return full
        self._roll_at, self._most = self._roll_rows, _NEVER
        self._sealer.seal_soon(full)
        return begun

    def _look(self, journal: Unsealed) -> None:
        """See every second, between two transitions, how the journal does."""
        self._look_at = monotonic_ns() + LOOK_NS
        fault = journal.file.trouble
        if fault is not None:
            self._roll_at, self._most = 0 if fault.errno in _SPOILT else _NEVER, MOST_ROWS
            self._on_error(fault)
            return
        self._roll_at, self._most = self._roll_rows if journal.file.size() < MOST_BYTES else 0, _NEVER
        self._sealer.sync_soon(journal.file)
        self._tell_recovery(journal)
        if journal.count >= MOST_ROWS:  # it cannot be sealed, but its file holds the rows: memory need not
            journal.rows = None

    def _tell_recovery(self, journal: Unsealed) -> None:
        waited, lost = journal.file.waited, self._lost
        if waited or lost.count:
            journal.file.waited, self._lost = 0, LostRows()
            self._on_recovery(waited, lost)
