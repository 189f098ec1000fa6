"""Read a run directory: sealed parts and journals as one table, while it is written or after it ended."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from recorder.schema import LAYERS, STEPS, Column, arrow_schema
from recorder.store.documents import MANIFEST, events_path, read_events, read_manifest
from recorder.store.errors import StoreError, cannot_read
from recorder.store.folder import Contents, contents, journal_path, part_path, ranks, table_folder
from recorder.store.journal import read_journal
from recorder.store.parts import check_columns, read_part
from recorder.store.tables import to_table, unify

_ATTEMPTS = 100
_NAMED = 6


@dataclass(frozen=True)
class StoredRun:
    """What a run directory holds. Rows are in the order in which they were recorded.

    `table` has the columns of `recorder.schema.STEPS` and then the others, user fields as `user_*`; `layers`
    those of LAYERS. `notes` says in one line each what was left out. `pending` are the positions in `table`
    whose values on the device were never copied. `rank` is the one whose rows these are.
    """

    table: pa.Table
    layers: pa.Table
    manifest: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]]
    notes: Sequence[str]
    pending: Sequence[int] = ()
    rank: int = 0


@dataclass(frozen=True)
class StoredTable:
    """The rows of one folder, the positions of pending ones, and notes on what was left out."""

    table: pa.Table
    pending: Sequence[int]
    notes: Sequence[str]


def is_run(path: str | PathLike[str]) -> bool:
    """Whether a directory is a run: it holds a manifest."""
    return os.path.isfile(Path(path) / MANIFEST)  # noqa: PTH113  # false, too, for what is no path at all


def read_run(path: str | PathLike[str], columns: Sequence[str] | None = None, rank: int | None = None) -> StoredRun:
    """Read one rank of a run (None: the first that has rows); of `steps` only these columns, where given.

    A run that is being written gives a prefix of its rows. A run without rows gives empty tables. Raises
    StoreError, whose text is one line, for anything that is not a run or is damaged.
    """
    run = Path(path)
    manifest = read_manifest(run)
    found = ranks(run)
    rank = _first_with_rows(run, found) if rank is None else rank
    if found and rank not in found:
        raise StoreError(run, f"holds no rank {rank}, but {_named(found)}", "choose one that is there")
    steps = read_table(table_folder(run, "steps", rank), STEPS, columns)
    layers = read_table(table_folder(run, "layers", rank), LAYERS)
    events, event_notes = read_events(events_path(run, rank))
    notes = dict.fromkeys([*_others(found, rank), *steps.notes, *layers.notes, *event_notes])
    if steps.pending:
        notes[f"the values on the device of {len(steps.pending)} rows were never copied: the run ended first"] = None
    return StoredRun(steps.table, layers.table, manifest, tuple(events), tuple(notes), steps.pending, rank)


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
        raise cannot_read(path, error) from None
    if journal is None:
        table, places, note = arrow_schema(tuple(columns)).empty_table(), [], None
    else:
        check_columns(path, [name for name, _ in journal.rows.layout.columns], columns)
        table, found = to_table(journal.rows)
        places, note = found.tolist(), journal.note
    return table if wanted is None else _select(table, wanted), places, note


def _select(table: pa.Table, wanted: Sequence[str]) -> pa.Table:
    return table.select([name for name in table.column_names if name in wanted])


def _first_with_rows(run: Path, found: Sequence[int]) -> int:
    with_rows = (rank for rank in found if contents(table_folder(run, "steps", rank)).numbers)
    return next(with_rows, found[0] if found else 0)


def _others(found: Sequence[int], rank: int) -> list[str]:
    others = [other for other in found if other != rank]
    verb = "is" if len(others) == 1 else "are"
    return [f"{_named(others)} {verb} not shown: only rank {rank} is read"] if others else []


def _named(numbers: Sequence[int]) -> str:
    """`rank 1`, `ranks 1, 2, 3`, `ranks 1 to 1023`, `ranks 0, 2, 4, 6, 8, 10 and 506 more`."""
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    if len(numbers) > _NAMED and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"ranks {numbers[0]} to {numbers[-1]}"
    more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
    return f"ranks {', '.join(map(str, numbers[:_NAMED]))}{more}"


def _missing(folder: Path, first: int, last: int) -> str:
    if first == last:
        return f"part {first} of {folder.parent.name} is missing: its rows are left out"
    return f"parts {first} to {last} of {folder.parent.name} are missing: their rows are left out"
