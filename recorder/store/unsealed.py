"""The rows of one journal: in its file at once, and in memory until they are sealed."""

from __future__ import annotations

from typing import Any

from recorder.store.append_file import AppendFile
from recorder.store.journal import encode
from recorder.store.packing import Packer
from recorder.store.recent import RecentRows
from recorder.store.rows import Rows
from recorder.store.shapes import Row, Shapes


class Unsealed:
    """Rows by position. Made with a file that holds none yet; `number` is that of the journal.

    `rows` are those in memory, None where memory let go of them: `file` has them. An interrupt at any moment leaves a
    row that `count` does not count; the next one takes its place, in the file as in memory.
    """

    def __init__(self, number: int, file: AppendFile, shapes: Shapes) -> None:
        self.number = number
        self.file = file
        self.rows: Rows | None = Rows(shapes.layout)
        self.recent = RecentRows()
        self.count = 0
        self.first_row: Any = None
        self._packer = Packer(shapes)

    def write(self, position: int, row: Row, user: Row | None, pending: bool) -> None:
        """Put a row at a position, where one lies or next. Raises as `Packer.record`, and OSError as the file does."""
        record = self._packer.record(position, row, user, pending)
        self.file.append(encode(record))
        if self.rows is not None:
            self.rows.put(position, record)
        _, defines, fields = record
        if defines or fields:
            self._packer.keep(defines, fields)
        if pending:
            self.recent.pending.add(position)
        elif self.recent.pending:
            self.recent.pending.discard(position)

    def add(self, key: object, row: Row, user: Row | None, pending: bool) -> None:
        """Put a row after all others. `key` is what it can be replaced by, None where it cannot. Raises as `write`."""
        position = self.count
        self.write(position, row, user, pending)
        if position == 0:
            self.first_row = row["row"]
        self.count = position + 1
        if key is not None:
            self.recent.add(key, position)
