"""Make the best of a run whose writer died: seal its journals, drop what was never finished."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from recorder.store.capture_names import CAPTURES, drop_unfinished
from recorder.store.documents import MANIFEST, drop_torn_event, events_path
from recorder.store.errors import StoreError
from recorder.store.files import temporary_of
from recorder.store.folder import TABLES, contents, part_path, seal_journal, table_folder
from recorder.store.lock import WriterLock, is_held
from recorder.store.order import plural


@dataclass
class Repair:
    """What was `done` to one rank, and what was `left_out`, in a line each."""

    rank: int
    done: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def repair(run: Path, ranks: Sequence[int]) -> list[Repair]:
    """Repair these ranks. Idempotent. Raises StoreError, with nothing done, where one of them is being recorded."""
    with ExitStack() as locks:
        for rank in ranks:
            folder = table_folder(run, "steps", rank)
            if is_held(folder):
                raise StoreError(run, f"rank {rank} of it is being recorded", "repair it when the recording is over")
            locks.callback(WriterLock(run, folder).release)
        return [_repair(run, rank) for rank in ranks]


def _repair(run: Path, rank: int) -> Repair:
    found = Repair(rank)
    for table in TABLES:
        folder = table_folder(run, table, rank)
        listed = contents(folder)
        for name in listed.temporary:
            (folder / name).unlink(missing_ok=True)
            found.done.append(f"{table}: removed {name}, which was never finished")
        for number in sorted(listed.journals):
            try:
                rows, note = seal_journal(folder, number)
            except StoreError as error:
                found.left_out.append(str(error).removeprefix(f"{run}/"))
                continue
            part = part_path(folder, number).name
            sealed = f"sealed {plural(rows, 'row')} as {part}" if rows else "removed a journal without further rows"
            found.done.append(f"{table}: {sealed}")
            found.left_out += [f"{table}: {note}"] if note else []
    for name in drop_unfinished(run, rank):
        found.done.append(f"{CAPTURES}: removed {name}, which was never finished")
    for path in (run / MANIFEST, events_path(run, rank)):
        unfinished = temporary_of(path)
        if unfinished.exists() and (rank == 0 or path.name != MANIFEST):
            unfinished.unlink()
            found.done.append(f"removed {unfinished.name}, which was never finished")
    if drop_torn_event(events_path(run, rank)):
        found.left_out.append("the last event, which was being written when the run ended")
    return found
