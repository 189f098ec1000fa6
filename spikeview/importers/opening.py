"""From a path to a Run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path

from recorder.store.lazy_table import distinct_texts
from spikeview.importers.captures import is_of_a_capture
from spikeview.importers.elsewhere import is_elsewhere, read_elsewhere
from spikeview.importers.errors import RunError
from spikeview.importers.importer import Asked, Importer
from spikeview.importers.naming import listed
from spikeview.importers.recorded import RUN_DIRECTORY
from spikeview.importers.source import Source
from spikeview.run import Run


def open_run(
    path: str | PathLike[str],
    rank: int | None = None,
    tell: Callable[[str], None] = lambda text: None,
    asked: Asked | None = None,
) -> Run:
    """Read whatever the path or URL holds; `tell` hears how far it is. Of several runs in one place, the first.

    Raises RunError, one line, where nothing here can, or where it has no rows.
    """
    if is_elsewhere(path):
        here = replace(asked or Asked(), lazily=False)  # what is fetched is removed again
        return read_elsewhere(str(path), lambda place: open_run(place, rank, asked=here), rank, tell)
    source, asked = Source(Path(path)), replace(asked or Asked(), rank=rank, tell=tell)
    try:
        importer = importer_of(source)
        names = importer.runs(source)
        run = importer.read(source, _chosen(source, asked, names))
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from error
    if not len(run):
        raise RunError(
            f"{path}: holds no rows yet; record at least one transition, or wait for the first to be written"
        )
    if len(names) > 1 and asked.run is None:
        others = f"the first of {len(names)} runs here: --run NAME opens another ({listed(names[1:], 4)})"
        run = replace(run, notes=(*run.notes, others))
    return _noting_the_unnamed(run)


def runs_in(path: str | PathLike[str]) -> list[str]:
    """The names of the runs in a place that holds several; none where it is one. Raises RunError as `open_run`."""
    if is_elsewhere(path):
        return []
    source = Source(Path(path))
    try:
        return list(importer_of(source).runs(source))
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from error


def importer_of(source: Source) -> Importer:
    """The first that does not decline. Raises RunError where all do, and OSError."""
    path = source.path
    if not path.exists():
        raise RunError(f"{path}: no such file or directory; check the path")
    if not source.is_folder and is_of_a_capture(path):
        raise RunError(f"{path}: is of a captured row, and no log; give the run directory, {path.parents[2]}")
    if source.is_folder and not any(path.iterdir()):
        return RUN_DIRECTORY  # which is what is meant, and says what is wrong
    if RUN_DIRECTORY.declines(source) is None:
        return RUN_DIRECTORY
    from spikeview.importers.formats import IMPORTERS  # which a recorded run needs none of

    reasons: dict[str, list[str]] = {}
    for importer in IMPORTERS:
        why = importer.declines(source)
        if why is None:
            return importer
        reasons.setdefault(why, []).append(importer.name)
    if source.is_folder:
        said = f"{path}: is no run and holds no log that is known here ({', '.join(reasons)})"
        raise RunError(f"{said}; give the run or the log itself")
    said = "; ".join(f"{', '.join(names)}: {why}" for why, names in reasons.items())
    raise RunError(f"{path}: is no log of a training run that is known here ({said})")


def _chosen(source: Source, asked: Asked, names: Sequence[str]) -> Asked:
    """What was asked for, with the name of a run where there are several. Raises RunError where it is none of them."""
    if asked.run is not None and asked.run not in names:
        have = f"it has {listed(names)}" if names else "it is a single run; leave --run out"
        raise RunError(f"{source.path}: holds no run {asked.run}; {have}")
    return asked


def _noting_the_unnamed(run: Run) -> Run:
    """Rows of no optimizer belong to no view where others are named: they are left out, and said to be."""
    if not run.optimizers or None not in distinct_texts(run.table, "optimizer"):
        return run
    unnamed = int((~run.recorded("optimizer")).sum())
    rows = "1 row names no optimizer and is" if unnamed == 1 else f"{unnamed:,} rows name no optimizer and are"
    return replace(run, notes=(*run.notes, f"{rows} left out"), source=partial(_later, run))


def _later(run: Run, noted: Run) -> Run:
    newer = run.refresh()
    return noted if newer is run else _noting_the_unnamed(newer)
