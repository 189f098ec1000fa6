"""From a path to a Run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from spikeview.importers import run_directory
from spikeview.importers.errors import RunError
from spikeview.run import Run


@dataclass(frozen=True)
class Importer:
    """One format: whether a path is of it, and how it is read."""

    name: str
    recognises: Callable[[Path], bool]
    read: Callable[[Path], Run]


IMPORTERS: tuple[Importer, ...] = (Importer("run directory", run_directory.recognises, run_directory.read),)


def open_run(path: str | PathLike[str]) -> Run:
    """Read whatever the path holds. Raises RunError, one line, where nothing here can, or where it has no rows."""
    place = Path(path)
    # What no importer recognises is given to the first: a run directory is what is meant, and it says what is wrong.
    importer = next((each for each in IMPORTERS if each.recognises(place)), IMPORTERS[0])
    try:
        run = importer.read(place)
    except OSError as error:
        raise RunError(f"{place}: cannot be read ({error.strerror}); check the path and its permissions") from error
    if not len(run):
        raise RunError(
            f"{place}: holds no rows yet; record at least one transition, or wait for the first to be written"
        )
    return run
