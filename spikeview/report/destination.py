"""Where a report goes: whole or not at all, never into a run, and over nothing that is not to be replaced."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from recorder.store import is_run
from spikeview.report.errors import ReportError


def refuse(destination: Path, replace: bool = True) -> None:
    """Raises ReportError, one line, for a place within a run directory, and for one that is taken and must stay."""
    try:
        places = destination.resolve().parents
        run = next((place for place in places if is_run(place) and (place / "steps").is_dir()), None)
        taken = not replace and os.path.lexists(destination)
    except (OSError, ValueError):
        return  # what is no path cannot be written either
    if run is not None:
        raise ReportError(f"{destination} lies within the run {run}, which is left as it is. Choose another place.")
    if taken:
        raise _taken(destination)


def put(destination: Path, text: str, replace: bool = True) -> Path:
    """Write a file whole. Raises ReportError as `placing`."""
    with placing(destination, replace) as partial:
        partial.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    return destination


@contextmanager
def placing(destination: Path, replace: bool = True) -> Iterator[Path]:
    """A path beside the destination to write to: a reader sees the old file or the whole new one.

    Whatever is raised meanwhile leaves nothing behind. Raises ReportError, one line, for a place that cannot be
    written, or that is taken where nothing is to be replaced.
    """
    with _one_line(destination):
        partial = destination.with_name(f".{uuid.uuid4().hex}.part")
        try:
            yield partial
            with partial.open("rb+") as written:
                os.fsync(written.fileno())
            _into_place(partial, destination, replace)
        finally:
            with suppress(OSError, ValueError):
                partial.unlink()


@contextmanager
def placing_folder(destination: Path, replace: bool = True) -> Iterator[Path]:
    """A folder beside the destination to fill: it becomes the destination, or its files are put into the one there is.

    Raises as `placing`.
    """
    with _one_line(destination):
        partial = destination.with_name(f".{uuid.uuid4().hex}.part")
        partial.mkdir()
        try:
            yield partial
            if not os.path.lexists(destination):
                partial.rename(destination)
            elif not replace:
                raise _taken(destination)
            else:
                for file in sorted(partial.iterdir()):
                    file.replace(destination / file.name)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _into_place(partial: Path, destination: Path, replace: bool) -> None:
    if replace:
        partial.replace(destination)
        return
    try:
        os.link(partial, destination)  # unlike a rename, it fails where something has come to lie there
    except FileExistsError:
        raise _taken(destination) from None
    except OSError:  # a file system without links
        if os.path.lexists(destination):
            raise _taken(destination) from None
        partial.rename(destination)


@contextmanager
def _one_line(destination: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise ReportError(f"Cannot write {destination}: {why}. Choose another place.") from problem


def _taken(destination: Path) -> ReportError:
    return ReportError(f"{destination} exists. Choose another name, or replace it with --force.")
