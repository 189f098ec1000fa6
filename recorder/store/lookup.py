"""The rows of one step, without reading the others."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from recorder.schema import STEPS, arrow_schema
from recorder.store.documents import read_manifest
from recorder.store.errors import StoreError, cannot_read
from recorder.store.folder import contents, journal_path, part_path, table_folder
from recorder.store.journal_reader import read_journal
from recorder.store.parts import find_step
from recorder.store.plausible import check_columns
from recorder.store.reader import first_with_rows
from recorder.store.tables import to_table, unify


def read_step(path: str | PathLike[str], step: int, rank: int | None = None) -> pa.Table:
    """The rows of one step of one rank (None: the first that has rows), all columns, in the order of recording.

    Several where a step has micro-steps or optimizers, or was taken again after a rewind; none where it was not
    recorded. Raises StoreError as `read_run`, where what has to be read is damaged.
    """
    run = Path(path)
    read_manifest(run)
    folder = table_folder(run, "steps", first_with_rows(run) if rank is None else rank)
    found = contents(folder)
    pieces = [arrow_schema(STEPS).empty_table()]
    for number in found.numbers:
        rows = _in_part(folder, number, step) if number in found.parts else _in_journal(folder, number, step)
        pieces += [rows] if rows is not None else []
    try:
        return unify(pieces, STEPS)
    except pa.ArrowException as error:
        raise StoreError(folder, f"holds values of another type than their columns ({error})", "restore it") from None


def _in_part(folder: Path, number: int, step: int) -> pa.Table | None:
    return find_step(part_path(folder, number), STEPS, step)


def _in_journal(folder: Path, number: int, step: int) -> pa.Table | None:
    path = journal_path(folder, number)
    try:
        journal = read_journal(path)
    except FileNotFoundError:
        return _in_part(folder, number, step)  # sealed since it was listed
    except OSError as error:
        raise cannot_read(path, error) from None
    if journal is None:
        return None
    check_columns(path, [name for name, _ in journal.layout.columns], STEPS)
    table, _ = to_table(journal)
    return table.filter(pc.equal(table["step"], pa.scalar(step, pa.int64())))
