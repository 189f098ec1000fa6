"""The folder of one table and rank: numbered parts, and journals of the same numbers.

Part K and journal K hold the same rows. Where part K is there, journal K does not count, so every moment of
sealing (part written, part in place, journal removed) can be the last one.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from recorder.store.errors import StoreError, cannot_read
from recorder.store.journal_reader import TORN, read_journal
from recorder.store.parts import write_part
from recorder.store.tables import Packed, to_table

# Each number has one name: 6 digits, and more only where it needs them.
_NUMBER = r"([0-9]{6}|[1-9][0-9]{6,8})"
_PART = re.compile(rf"part-{_NUMBER}\.parquet")
_JOURNAL = re.compile(rf"_journal-{_NUMBER}")
_RANK = re.compile(r"rank=(0|[1-9][0-9]{0,8})")

_DAMAGED = "_damaged-"

TABLES = ("steps", "layers")


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


def rank_of(name: str) -> int | None:
    """The rank whose rows a file holds, from its path within the run; None where it is no part and no journal."""
    table, _, rest = name.partition("/")
    rank, _, file = rest.partition("/")
    found = _RANK.fullmatch(rank)
    if table not in TABLES or found is None or not (_PART.fullmatch(file) or _JOURNAL.fullmatch(file)):
        return None
    return int(found[1])


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


def holds_rows(folder: Path) -> bool:
    """Whether a row of one table and rank is there, or what may be one and cannot be read."""
    found = contents(folder)
    return bool(found.parts or set_aside(folder)) or any(
        _may_hold_rows(journal_path(folder, number)) for number in found.journals
    )


def seal(folder: Path, number: int, rows: Packed, pause: Callable[[], None] = lambda: None) -> None:
    """Put part `number` in place, then drop its journal. For `pause` see `to_table`."""
    table, pending = to_table(rows, pause)
    write_part(part_path(folder, number), table, pending)
    _drop(journal_path(folder, number))


def seal_journals(folder: Path, below: int | None = None) -> Iterator[str]:
    """Seal the journals that no writer is at, those `below` a number where one is. Idempotent.

    Yields a note for what could not be kept.
    """
    found = contents(folder)
    for name in found.temporary:
        (folder / name).unlink(missing_ok=True)
    for number in sorted(number for number in found.journals if below is None or number < below):
        _, note = seal_journal(folder, number)
        if note is not None:
            yield note


def seal_journal(folder: Path, number: int) -> tuple[int, str | None]:
    """Seal one journal: how many rows came out of it, and a note on what could not be kept.

    Raises StoreError where it cannot be read at all.
    """
    path = journal_path(folder, number)
    journal = None if part_path(folder, number).exists() else read_journal(path)
    note = None if journal is None else journal.note
    if note not in (None, TORN):  # what could not be read is kept for whoever can
        shutil.copyfile(path, folder / f"{_DAMAGED}{number:06d}")
    if journal is None or not len(journal):
        _drop(path)
        return 0, note
    seal(folder, number, journal)
    return len(journal), note


def set_aside(folder: Path) -> list[str]:
    """The names of files with rows that could not be read when their journal was sealed."""
    return sorted(name for name in _names(folder) if name.startswith(_DAMAGED))


def _may_hold_rows(journal: Path) -> bool:
    try:
        found = read_journal(journal)
    except (OSError, StoreError):  # it may have been sealed meanwhile
        return True
    return found is not None and (len(found) > 0 or found.note not in (None, TORN))


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
