"""Read a run directory: sealed parts and journals as one table, while it is written or after it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from recorder.schema import LAYERS, STEPS, Column, arrow_schema
from recorder.store.documents import MANIFEST, events_path, read_events, read_manifest
from recorder.store.errors import StoreError
from recorder.store.folder import Contents, contents, journal_path, part_path, table_folder
from recorder.store.journal import read_journal
from recorder.store.parts import read_part
from recorder.store.tables import to_table, unify

_ATTEMPTS = 100


@dataclass(frozen=True)
class StoredRun:
    """What a run directory holds. Rows are in the order in which they were recorded.

    `table` has the columns of `recorder.schema.STEPS` and then the others, user fields as `user_*`; `layers`
    those of LAYERS. `notes` says in one line each what was left out. `pending` are the positions in `table`
    whose values on the device were never copied.
    """

    table: pa.Table
    layers: pa.Table
    manifest: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]]
    notes: Sequence[str]
    pending: Sequence[int] = ()


@dataclass(frozen=True)
class StoredTable:
    """The rows of one folder, the positions of pending ones, and notes on what was left out."""

    table: pa.Table
    pending: Sequence[int]
    notes: Sequence[str]


def is_run(path: str | PathLike[str]) -> bool:
    """Whether a directory is a run: it holds a manifest."""
    return (Path(path) / MANIFEST).is_file()


def read_run(path: str | PathLike[str], columns: Sequence[str] | None = None, rank: int = 0) -> StoredRun:
    """Read one rank of a run; of `steps` only these columns, where given.

    A run that is being written gives a prefix of its rows. A run without rows gives empty tables. Raises
    StoreError, whose text is one line, for anything that is not a run or is damaged.
    """
    run = Path(path)
    manifest = read_manifest(run)
    steps = read_table(table_folder(run, "steps", rank), STEPS, columns)
    layers = read_table(table_folder(run, "layers", rank), LAYERS)
    events, event_notes = read_events(events_path(run, rank))
    notes = dict.fromkeys([*steps.notes, *layers.notes, *event_notes])
    if steps.pending:
        notes[f"the values on the device of {len(steps.pending)} rows were never copied: the run ended first"] = None
    return StoredRun(steps.table, layers.table, manifest, tuple(events), tuple(notes), steps.pending)


def read_table(folder: Path, columns: Sequence[Column], wanted: Sequence[str] | None = None) -> StoredTable:
    """All rows of one folder; the columns that are not `wanted` (None: all) are left out."""
    for _ in range(_ATTEMPTS):
        try:
            return _read(folder, contents(folder), columns, wanted)
        except FileNotFoundError:
            continue  # a journal was sealed between the listing and the reading
    raise StoreError(folder, "changes faster than it can be read", "try again")


def _read(folder: Path, found: Contents, columns: Sequence[Column], wanted: Sequence[str] | None) -> StoredTable:
    tables: list[pa.Table] = []
    pending: list[int] = []
    notes = [_missing(folder, first, last) for first, last in found.missing]
    count = 0
    for number in found.numbers:
        if number in found.parts:
            table, places = read_part(part_path(folder, number), columns, wanted)
        else:
            table, places, note = _read_tail(journal_path(folder, number), columns, wanted)
            notes += [note] if note else []
        pending += [count + place for place in places]
        count += table.num_rows
        tables.append(table)
    if not count:
        table = arrow_schema(tuple(columns)).empty_table()
        return StoredTable(table if wanted is None else _select(table, wanted), (), tuple(notes))
    try:
        return StoredTable(unify(tables, columns), tuple(pending), tuple(notes))
    except pa.ArrowException as error:
        raise StoreError(folder, f"holds values of another type than their columns ({error})", "restore it") from None


def _read_tail(
    path: Path, columns: Sequence[Column], wanted: Sequence[str] | None
) -> tuple[pa.Table, list[int], str | None]:
    try:
        journal = read_journal(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(path, f"cannot be read ({error.strerror})", "check its permissions") from None
    if journal is None:
        table, places, note = arrow_schema(tuple(columns)).empty_table(), [], None
    else:
        table, found = to_table(journal.rows)
        places, note = found.tolist(), journal.note
    return table if wanted is None else _select(table, wanted), places, note


def _select(table: pa.Table, wanted: Sequence[str]) -> pa.Table:
    return table.select([name for name in table.column_names if name in wanted])


def _missing(folder: Path, first: int, last: int) -> str:
    if first == last:
        return f"part {first} of {folder.parent.name} is missing: its rows are left out"
    return f"parts {first} to {last} of {folder.parent.name} are missing: their rows are left out"
