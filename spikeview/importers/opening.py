"""From a path to a Run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from spikeview.importers import run_directory
from spikeview.importers.errors import RunError
from spikeview.run import Run


@dataclass(frozen=True)
class Importer:
    """One format: whether a path is of it, and how one rank of it is read (None: the first there is)."""

    name: str
    recognises: Callable[[Path], bool]
    read: Callable[[Path, int | None], Run]


IMPORTERS: tuple[Importer, ...] = (Importer("run directory", run_directory.recognises, run_directory.read),)


def open_run(path: str | PathLike[str], rank: int | None = None) -> Run:
    """Read whatever the path holds. Raises RunError, one line, where nothing here can, or where it has no rows."""
    place = Path(path)
    try:
        # What none recognises is given to the first: a run directory is what is meant, and it says what is wrong.
        importer = next((each for each in IMPORTERS if each.recognises(place)), IMPORTERS[0])
        run = importer.read(place, rank)
    except OSError as error:
        raise RunError(f"{place}: cannot be read ({error.strerror}); check the path and its permissions") from error
    if not len(run):
        raise RunError(
            f"{place}: holds no rows yet; record at least one transition, or wait for the first to be written"
        )
    return _noting_the_unnamed(run)


def _noting_the_unnamed(run: Run) -> Run:
    """Rows of no optimizer belong to no view where others are named: they are left out, and said to be."""
    unnamed = int((~run.recorded("optimizer")).sum())
    if not unnamed or not run.optimizers:
        return run
    rows = "1 row names no optimizer and is" if unnamed == 1 else f"{unnamed:,} rows name no optimizer and are"
    return replace(run, notes=(*run.notes, f"{rows} left out"))
