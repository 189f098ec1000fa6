"""The folder of one table and rank: numbered parts, and journals of the same numbers.

Part K and journal K hold the same rows. Where part K is there, journal K does not count, so every moment of
sealing (part written, part in place, journal removed) can be the last one.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from recorder.store.errors import cannot_read
from recorder.store.journal import TORN, read_journal
from recorder.store.parts import write_part
from recorder.store.rows import Rows
from recorder.store.tables import to_table

_PART = re.compile(r"part-(\d{6,9})\.parquet")
_JOURNAL = re.compile(r"_journal-(\d{6,9})")
_RANK = re.compile(r"rank=(0|[1-9]\d{0,8})")


@dataclass(frozen=True)
class Contents:
    """The numbers of the parts and of the journals in a folder."""

    parts: frozenset[int] = frozenset()
    journals: frozenset[int] = frozenset()
    temporary: tuple[str, ...] = field(default=(), compare=False)

    @property
    def numbers(self) -> list[int]:
        return sorted(self.parts | self.journals)

    @property
    def missing(self) -> list[tuple[int, int]]:
        """First and last number of each gap."""
        pairs = pairwise([-1, *self.numbers])
        return [(before + 1, after - 1) for before, after in pairs if after - before > 1]


def table_folder(run: Path, table: str, rank: int) -> Path:
    """Where the rows of one table and rank lie."""
    return run / table / f"rank={rank}"


def ranks(run: Path) -> list[int]:
    """The ranks that have a folder for their rows."""
    return sorted(int(match[1]) for name in _names(run / "steps") if (match := _RANK.fullmatch(name)))


def part_path(folder: Path, number: int) -> Path:
    """The sealed part of a number."""
    return folder / f"part-{number:06d}.parquet"


def journal_path(folder: Path, number: int) -> Path:
    """The journal of a number."""
    return folder / f"_journal-{number:06d}"


def contents(folder: Path) -> Contents:
    """What a folder holds now; nothing where it does not exist.

    A listing is not a moment: a journal may be sealed while it goes on, and then neither it nor its part is
    seen. So a number that is missing counts only where a second listing misses it too.
    """
    seen = _listing(folder)
    while seen.missing:
        again = _listing(folder)
        if again.missing == seen.missing:
            return again
        seen = again
    return seen


def seal(folder: Path, number: int, rows: Rows) -> None:
    """Put part `number` in place, then drop its journal."""
    table, pending = to_table(rows)
    write_part(part_path(folder, number), table, pending)
    _drop(journal_path(folder, number))


def seal_journals(folder: Path) -> Iterator[str]:
    """Seal what a dead writer left, and yield a note for what could not be kept. Idempotent."""
    found = contents(folder)
    for name in found.temporary:
        (folder / name).unlink(missing_ok=True)
    for number in sorted(found.journals):
        path = journal_path(folder, number)
        journal = None if number in found.parts else read_journal(path)
        if journal is not None and journal.note:
            yield journal.note
            if journal.note != TORN:  # what could not be read is kept for whoever can
                shutil.copyfile(path, folder / f"_damaged-{number:06d}")
        if journal is None or not len(journal.rows):
            _drop(path)
        else:
            seal(folder, number, journal.rows)


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise cannot_read(folder, error) from None


def _listing(folder: Path) -> Contents:
    names = _names(folder)
    return Contents(
        parts=frozenset(int(match[1]) for name in names if (match := _PART.fullmatch(name))),
        journals=frozenset(int(match[1]) for name in names if (match := _JOURNAL.fullmatch(name))),
        temporary=tuple(name for name in names if name.startswith("_tmp-")),
    )


def _drop(journal: Path) -> None:
    with suppress(PermissionError):  # on Windows a reader may hold it; beside its part it does not count
        journal.unlink(missing_ok=True)
