"""The rows of one folder as one table: read once, and from then on only what is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recorder.schema import Column, arrow_schema
from recorder.store.errors import ReplacedError, StoreError, cannot_read, of_another_type
from recorder.store.folder import Contents, contents, journal_path, part_path
from recorder.store.journal_reader import Journal, Reached, read_journal
from recorder.store.lazy_table import LazyTable, Table, in_memory
from recorder.store.parts import Mark, Part, look_at_part, mark_of, read_part
from recorder.store.plausible import check_columns
from recorder.store.tables import few_chunks, to_table, unify

_ATTEMPTS = 100


@dataclass(frozen=True)
class Piece:
    """The rows of one number: those of a sealed part, or those of a journal up to what was `reached` of it.

    `pending` are the positions in the piece of rows whose values on the device were not copied yet. `mark` tells a part
    from another that is put in its place.
    """

    rows: int = 0
    pending: tuple[int, ...] = ()
    sealed: bool = False
    mark: Mark | None = None
    reached: Reached | None = None
    note: str | None = None


@dataclass(frozen=True)
class StoredTable:
    """The rows of a folder in the order in which they were recorded, which the `pieces` by their numbers add up to.

    Of the columns only the `wanted` ones are read (None: all), those of sealed parts when they are asked for where the
    table is a lazy one. The first `unchanged` rows are as they were in the table that this one was refreshed from.
    `notes` say what was left out.
    """

    folder: Path
    columns: tuple[Column, ...]
    wanted: tuple[str, ...] | None
    table: Table
    pieces: Mapping[int, Piece]
    notes: tuple[str, ...] = ()
    unchanged: int = 0

    @property
    def pending(self) -> tuple[int, ...]:
        """The positions in the table of pending rows."""
        starts, pieces = _starts(self.pieces), self.pieces.items()
        return tuple(starts[number] + place for number, piece in pieces for place in piece.pending)

    def refreshed(self) -> StoredTable:
        """The table with what is new; itself where nothing is. Raises ReplacedError where rows of it are gone."""
        for _ in range(_ATTEMPTS):
            try:
                return self._refreshed(contents(self.folder))
            except FileNotFoundError:
                continue  # it changed between the listing and the reading
        raise StoreError(self.folder, "changes faster than it can be read", "try again")

    def _refreshed(self, found: Contents) -> StoredTable:
        starts, pieces = _starts(self.pieces), {}
        unchanged, later = 0, list[Part | Table]()
        for number in found.numbers:
            old, start = self.pieces.get(number, Piece()), starts.get(number, 0)
            pieces[number], kept, fresh = self._piece(number, number in found.parts, old, start)
            if not later:
                unchanged += kept
            elif kept:
                later.append(self.table.slice(start, kept))
            later += fresh
        if any(piece.rows and number not in pieces for number, piece in self.pieces.items()):
            raise ReplacedError(self.folder)
        sealed = next((number for number, piece in self.pieces.items() if piece.sealed), None)
        if sealed is not None and self.pieces[sealed].mark != mark_of(part_path(self.folder, sealed).lstat()):
            raise ReplacedError(self.folder)  # one is enough: of a run that goes on none is ever touched again
        notes = [_missing(self.folder, first, last) for first, last in found.missing]
        notes += [piece.note for piece in pieces.values() if piece.note]
        if tuple(notes) == self.notes and all(pieces[number] is self.pieces.get(number) for number in pieces):
            return self
        table = self._joined(unchanged, later)
        return StoredTable(self.folder, self.columns, self.wanted, table, pieces, tuple(notes), unchanged)

    def _piece(self, number: int, sealed: bool, old: Piece, start: int) -> tuple[Piece, int, Sequence[Part | Table]]:
        """A piece now, how many of its first rows are unchanged, and its further ones."""
        if old.sealed and sealed:
            return old, old.rows, []
        if old.sealed:
            raise ReplacedError(self.folder)
        path = journal_path(self.folder, number)
        try:
            journal = None if sealed else read_journal(path, old.reached)
        except FileNotFoundError:
            sealed = True  # since it was listed
        except OSError as error:
            raise cannot_read(path, error) from None
        if sealed:
            path = part_path(self.folder, number)
            mark = mark_of(path.lstat())
            rows, pending, note = self._part(path)
            if old.rows and (rows.num_rows < old.rows or _began(rows) != _began(self.table.slice(start, 1))):
                raise ReplacedError(self.folder)  # it is not that journal which was sealed
            return Piece(rows.num_rows, tuple(pending), sealed=True, mark=mark, note=note), 0, [rows]
        if journal is None or (old.reached and not len(journal) and journal.note == old.note):
            return old, old.rows, []
        if old.reached is None:
            check_columns(path, [name for name, _ in journal.layout.columns], self.columns)
        return self._journalled(journal, old, start)

    def _part(self, path: Path) -> tuple[Part | pa.Table, Sequence[int], str | None]:
        if not isinstance(self.table, LazyTable):
            return read_part(path, self.columns, self.wanted)
        part = look_at_part(path, self.columns, self.wanted)
        return part, part.said.pending, part.note

    def _journalled(self, journal: Journal, old: Piece, start: int) -> tuple[Piece, int, list[pa.Table]]:
        """What new records make of a piece whose rows start there."""
        fresh, places = to_table(journal)
        fresh = fresh if self.wanted is None else _select(fresh, self.wanted)
        positions = journal.positions
        pending = {*old.pending}.difference(positions.tolist()).union(positions[places].tolist())
        piece = Piece(journal.reached.rows, tuple(sorted(pending)), reached=journal.reached, note=journal.note)
        kept = int(min(positions[0], old.rows)) if len(journal) else old.rows
        rows = in_memory(self.table.slice(start + kept, old.rows - kept))
        amended = _amended(rows, positions - kept, fresh, self.columns)
        return piece, kept, [amended] if len(journal) else []

    def _joined(self, unchanged: int, later: Sequence[Any]) -> Table:
        kept = self.table.slice(0, unchanged)
        try:
            if isinstance(kept, LazyTable):
                return kept.followed(later)
            tables = [table for table in (kept, *later) if table.num_rows]
            return few_chunks(unify(tables, self.columns)) if tables else kept
        except MemoryError:
            raise
        except pa.ArrowException as error:
            raise of_another_type(self.folder, error) from None


def unread(
    folder: Path, columns: Sequence[Column], wanted: Sequence[str] | None = None, lazily: bool = False
) -> StoredTable:
    """The table of a folder before any of its rows are read; only the `wanted` columns will be (None: all)."""
    empty = arrow_schema(tuple(columns)).empty_table()
    names = None if wanted is None else tuple(wanted)
    empty = empty if names is None else _select(empty, names)
    table = LazyTable(tuple(columns)).followed([empty]) if lazily else empty
    return StoredTable(folder, tuple(columns), names, table, {})


def _began(rows: Part | Table) -> object:
    """When the first row began, None where that is not told: amended or not, it is the same."""
    if isinstance(rows, Part):
        return rows.read(["time_ns"], 0, 1)["time_ns"][0].as_py() if "time_ns" in rows.names else None
    return rows.slice(0, 1)["time_ns"][0].as_py() if "time_ns" in rows.column_names else None


def _starts(pieces: Mapping[int, Piece]) -> dict[int, int]:
    """Where the rows of each piece begin in the table."""
    return dict(zip(pieces, accumulate((piece.rows for piece in pieces.values()), initial=0), strict=False))


def _amended(rows: pa.Table, places: NDArray[np.int64], fresh: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """The rows, with fresh ones put at these places; those after the last place follow in order."""
    count = max(rows.num_rows, int(places[-1]) + 1 if len(places) else 0)
    if fresh.num_rows == count:
        return fresh
    sources = np.arange(count)
    sources[places] = rows.num_rows + np.arange(len(places))
    return unify([rows, fresh], columns).take(sources)


def _select(table: pa.Table, wanted: Sequence[str]) -> pa.Table:
    return table.select([name for name in table.column_names if name in wanted])


def _missing(folder: Path, first: int, last: int) -> str:
    if first == last:
        return f"part {first} of {folder.parent.name} is missing: its rows are left out"
    return f"parts {first} to {last} of {folder.parent.name} are missing: their rows are left out"
