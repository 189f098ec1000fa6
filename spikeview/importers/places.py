"""Where runs lie: a path that is one, or a directory that holds some."""

from __future__ import annotations

from pathlib import Path

from spikeview.importers.bundle import BUNDLE, is_bundle
from spikeview.importers.elsewhere import is_elsewhere
from spikeview.importers.errors import RunError
from spikeview.importers.importer import Importer
from spikeview.importers.opening import importer_of
from spikeview.importers.source import Source

DEEP = 3

Found = list[tuple[Path, Importer | None]]


def places(path: str) -> list[str]:
    """The path itself; of a directory that is no run, the runs in it and in its directories, in order of name."""
    try:
        single = is_elsewhere(path) or not Path(path).is_dir()
    except OSError:  # such as a name that is too long: whoever reads it says so
        single = True
    return [path] if single else [str(found) for found, _ in _runs(Path(path), DEEP)] or [path]


def _runs(path: Path, deep: int) -> Found:
    """The path with what reads it, where it is a run; else what is in it, so many directories deep."""
    importer = _importer(path)
    if not path.is_dir() or (importer is not None and not importer.among_others):
        return [] if importer is None else [(path, importer)]
    try:
        names = sorted(each for each in path.iterdir() if not each.name.startswith("."))
    except OSError:
        return [(path, None)]  # whoever reads it says why it cannot be
    inside = [found for each in names for found in _runs(each, deep - 1)] if deep else []
    alone = importer is not None and all(found is importer for _, found in inside)
    return [(path, importer)] if alone else inside


def _importer(path: Path) -> Importer | None:
    try:
        if path.is_dir() and not any(path.iterdir()):
            return None  # an empty directory is no run, though it is taken for one
        importer = importer_of(Source(path))
        # whoever opens a zip file means a bundle; in a directory most are a checkpoint's
        return None if importer is BUNDLE and not is_bundle(path) else importer
    except (RunError, OSError):
        return None
