"""Where runs lie: a path that is one, or a directory that holds some."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spikeview.importers.elsewhere import is_elsewhere
from spikeview.importers.errors import RunError
from spikeview.importers.opening import runs_in

DEEP = 3


def places(path: str) -> list[str]:
    """The path itself; of a directory that is no run, the runs in it and in its directories, in order of name."""
    try:
        single = is_elsewhere(path) or not Path(path).is_dir() or _is_run(Path(path))
    except OSError:  # such as a name that is too long: whoever reads it says so
        single = True
    return [path] if single else [str(found) for found in _inside(Path(path), DEEP)] or [path]


def _inside(folder: Path, deep: int) -> Iterator[Path]:
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        yield folder  # whoever reads it says why it cannot be
        return
    for path in inside:
        if path.name.startswith("."):
            continue
        if path.is_dir() and not _is_run(path):
            yield from _inside(path, deep - 1) if deep > 1 else ()
        elif path.is_dir() or _is_run(path):
            yield path


def _is_run(path: Path) -> bool:
    try:
        runs_in(path)
    except RunError:
        return False
    return not path.is_dir() or any(path.iterdir())  # an empty directory is none, though it is taken for one
