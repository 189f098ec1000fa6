"""Whether a run is whole, part by part and row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recorder.schema import LAYERS, STEPS, Column
from recorder.store.documents import events_path, read_events
from recorder.store.errors import StoreError, cannot_read
from recorder.store.folder import Contents, contents, journal_path, part_path, set_aside, table_folder
from recorder.store.journal_reader import TORN, read_journal
from recorder.store.lock import is_held
from recorder.store.order import KEYS, order_faults, plural
from recorder.store.parts import look_at_part
from recorder.store.plausible import check_columns
from recorder.store.tables import to_table, unify


@dataclass
class Account:
    """What one rank of a run holds, the `faults` that make it less than whole, and `remarks` that do not.

    `is_live` tells that a writer was at work, whose last row and last event may be unfinished.
    """

    rank: int
    is_live: bool
    rows: int = 0
    layers: int = 0
    parts: int = 0
    journals: int = 0
    events: int = 0
    faults: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def unless_live(self, what: str) -> None:
        """A fault, unless a writer is at work."""
        (self.remarks if self.is_live else self.faults).append(what)


def verify(run: Path, rank: int, manifest: Mapping[str, Any]) -> Account:
    """Read everything of one rank: every page of every part, every frame, every event, the number of every row."""
    account = Account(rank, is_held(table_folder(run, "steps", rank)))
    steps = _read(run, "steps", STEPS, KEYS, account)
    account.rows = steps.num_rows
    account.faults += order_faults(steps)
    if rank == 0 and manifest.get("closed"):
        account.faults += _cut_off(steps, manifest.get("last_row"))
    account.layers = _read(run, "layers", LAYERS, ("row",), account).num_rows
    try:
        events = read_events(events_path(run, rank))
        account.events = len(events.said)
        for note in events.notes:
            account.unless_live(note)
    except StoreError as error:
        account.faults.append(_within(run, error))
    if account.journals and not account.is_live:
        account.remarks.append(f"{plural(account.journals, 'journal')} not sealed: `python -m recorder repair` does it")
    return account


def _read(run: Path, table: str, columns: Sequence[Column], kept: Sequence[str], account: Account) -> pa.Table:
    """The columns that are `kept` of all rows that can be read of one table; the account is told of the rest."""
    folder = table_folder(run, table, account.rank)
    found = contents(folder)
    account.parts += len(found.parts)
    account.journals += len(found.journals - found.parts)
    account.faults += [f"{name} of {table} is missing" for name in _missing(found)]
    account.faults += [f"{name} of {table} holds rows that could not be read" for name in set_aside(folder)]
    if found.temporary and not account.is_live:
        account.remarks.append(f"{plural(len(found.temporary), 'unfinished file')} of {table} left by a crash")
    wanted = [column for column in columns if column.name in kept]
    pieces = [pa.schema([(column.name, column.arrow) for column in wanted]).empty_table()]
    pending = 0
    for number in found.numbers:
        try:
            rows, places = _piece(folder, number, number in found.parts, columns, account)
            pieces = [unify([*pieces, rows.select(kept)], wanted)]
        except StoreError as error:
            account.faults.append(_within(run, error))
        except pa.ArrowException as error:
            account.faults.append(f"number {number} of {table} holds values of another type than its columns: {error}")
        else:
            pending += len(places)
    if pending:
        account.unless_live(f"{plural(pending, 'row')} without the values that the device still held")
    return pieces[0]


def _piece(
    folder: Path, number: int, is_sealed: bool, columns: Sequence[Column], account: Account
) -> tuple[pa.Table, Sequence[int]]:
    """The rows of one part or journal and the places of pending ones. Raises StoreError where it cannot be read."""
    try:
        if is_sealed:
            part = look_at_part(part_path(folder, number), columns, None)
            table = part.read(part.names)
            account.faults += [part.note] if part.note else []
            account.faults += [f"{part.path.name} {fault}" for fault in part.said.faults(table)]
            return table, part.said.pending
        path = journal_path(folder, number)
        journal = read_journal(path)
    except FileNotFoundError:
        if is_sealed:
            raise StoreError(part_path(folder, number), "is gone since it was listed", "look again") from None
        return _piece(folder, number, True, columns, account)  # sealed since it was listed
    except OSError as error:
        raise cannot_read(folder, error) from None
    if journal is None:
        return pa.schema([(column.name, column.arrow) for column in columns]).empty_table(), ()
    check_columns(path, [name for name, _ in journal.layout.columns], columns)
    if journal.note == TORN:
        account.unless_live(f"{path.name}: {journal.note}")
    elif journal.note:
        account.faults.append(journal.note)
    table, places = to_table(journal)
    return table, places.tolist()


def _cut_off(steps: pa.Table, last: object) -> list[str]:
    """Whether a closed run lacks its last rows, which no gap in the numbers of its parts would tell."""
    found = pc.max(steps["row"]).as_py() if steps.num_rows else -1
    if not isinstance(last, int) or found is None or found >= last:
        return []
    return [f"rows {found + 1} to {last} are missing: the run was closed with them"]


def _missing(found: Contents) -> list[str]:
    return [f"part {first}" if first == last else f"parts {first} to {last}" for first, last in found.missing]


def _within(run: Path, error: StoreError) -> str:
    """An error's line with the path as it is within the run."""
    return str(error).removeprefix(f"{run}/")
