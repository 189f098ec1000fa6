"""What a directory holds before a run is written into it, and how it is made ready for that."""

from __future__ import annotations

from pathlib import Path
from stat import S_ISDIR
from typing import Any

from recorder.store.capture_names import finished
from recorder.store.documents import MANIFEST, drop_torn_event, events_path, read_manifest
from recorder.store.errors import StoreError
from recorder.store.folder import TABLES, contents, holds_rows, journal_path, ranks, seal_journals, table_folder
from recorder.store.lock import is_held


def manifest_to_go_on_with(run: Path, rank: int, resume: bool) -> dict[str, Any] | None:
    """The manifest of the run that is there; None where a new one begins.

    What ended before its first row is no run yet, and one begins in its place. Raises StoreError where the path can
    take no run, or holds rows or captures and `resume` is false.
    """
    try:
        is_directory = S_ISDIR(run.stat().st_mode)  # asked once: another rank may make it at any moment
    except FileNotFoundError:
        return None
    if not is_directory:
        raise StoreError(run, "is a file, and a run needs a directory", "choose another path")
    has_manifest = (run / MANIFEST).is_file()
    if not resume and (has_manifest or rank > 0) and _is_begun(run, rank):
        raise _refusal(run)
    if has_manifest:
        manifest = read_manifest(run)
        return manifest if resume or rank > 0 else None
    # Other ranks may have begun already: only rows of its own make a run without a manifest one that was there before.
    if rank == 0 and _holds_rows(run, rank):
        raise StoreError(run, f"holds rows but no {MANIFEST}, so it cannot be gone on with", "choose another path")
    return None


def made_ready(run: Path, rank: int, resume: bool) -> list[str]:
    """Seal what a killed writer left, or drop it where a new run begins; what could not be kept, in one line each.

    The lock must be held. Raises StoreError where another writer was quicker, and has come to its end.
    """
    if not resume:
        if _holds_rows(run, rank):
            raise _refusal(run)
        for table in TABLES:
            folder = table_folder(run, table, rank)
            for number in contents(folder).journals:
                journal_path(folder, number).unlink(missing_ok=True)
        events_path(run, rank).unlink(missing_ok=True)
        return []
    notes = [note for table in TABLES for note in seal_journals(table_folder(run, table, rank))]
    drop_torn_event(events_path(run, rank))
    return notes


def _is_begun(run: Path, rank: int) -> bool:
    """Whether a new run would cover anything up. The manifest that rank 0 writes is that of all ranks.

    Those that are being recorded at this moment began before rank 0, and are of the same run.
    """
    others = [each for each in ranks(run) if not is_held(table_folder(run, "steps", each))] if rank == 0 else []
    looked_at = {rank, *others}
    return any(_holds_rows(run, each) or finished(run, each) for each in looked_at)


def _holds_rows(run: Path, rank: int) -> bool:
    return any(holds_rows(table_folder(run, table, rank)) for table in TABLES)


def _refusal(run: Path) -> StoreError:
    return StoreError(run, "holds a run already", "pass resume=True to go on with it, or choose another path")
