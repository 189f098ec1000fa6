"""A bundle: the rows around one incident, zipped with the report on it. Whoever it came from, it is opened safely."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from spikeview.captured import not_here
from spikeview.importers import run_directory, unpacking
from spikeview.importers.errors import RunError
from spikeview.importers.importer import Asked, Importer
from spikeview.importers.source import Source
from spikeview.run import Run

MANIFEST = "bundle.json"
SCHEMA, VERSION = "spikeview.bundle", 1
RUN = "run/"
ZIP = b"PK\x03\x04"
LARGEST_MANIFEST = 2**20


def is_bundle(path: Path) -> bool:
    """Whether a path is a bundle, as far as its list of entries tells."""
    try:
        if not _is_zip(path):
            return False
        with zipfile.ZipFile(path) as archive:
            return MANIFEST in archive.namelist()
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return False


def declines(source: Source) -> str | None:
    """None for a zip file: no log is one, so that whoever opens one means a bundle."""
    return None if _is_zip(source.path) else "no zip file"


def read(source: Source, asked: Asked) -> Run:
    """The rows of a bundle, with what it says of itself as a note. Raises RunError for one that is not safe to open.

    What is needed of it is unpacked into a directory that only this user can enter, and that is gone afterwards.
    """
    if asked.mapping:
        raise RunError(f"{source.path}: is a recorded run, whose columns have their names; leave --map out")
    with (
        unpacking.archive(source.path) as archive,
        tempfile.TemporaryDirectory(prefix="spikeview-", ignore_cleanup_errors=True) as place,
    ):
        said = _manifest(source.path, archive)
        unpacking.unpack(source.path, archive, RUN, Path(place))
        try:
            run = run_directory.read(Path(place), asked.rank)
        except RunError as error:
            raise RunError(str(error).replace(place, f"{source.path}, {RUN.rstrip('/')}")) from error
    notes = tuple(dict.fromkeys((*_notes(said), *run.notes)))
    return replace(run, path=str(source.path), notes=notes, captures=not_here(run.captures), source=None)


def _is_zip(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(ZIP)) == ZIP


def _manifest(path: Path, archive: zipfile.ZipFile) -> Mapping[str, Any]:
    if MANIFEST not in archive.namelist():
        raise RunError(
            f"{path}: is a zip file without a {MANIFEST}, so it is no bundle; unpack it, and open what it holds"
        )
    data = unpacking.content(path, archive, MANIFEST, LARGEST_MANIFEST)
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        raise RunError(f"{path}: its {MANIFEST} is not JSON, so it is no bundle; get it anew") from None
    if not isinstance(said, dict) or said.get("schema") != SCHEMA:
        raise RunError(f"{path}: its {MANIFEST} is that of something else, so it is no bundle; get it anew")
    version = said.get("schema_version")
    if not isinstance(version, int) or version > VERSION:
        raise RunError(
            f"{path}: is a bundle of version {version}, and this one reads up to {VERSION}; update spikeview"
        )
    return said


def _notes(said: Mapping[str, Any]) -> list[str]:
    """What a reader of the rows must know: that they are not the whole run, and what was left out of that."""
    notes = said.get("notes")
    texts = [said.get("extent"), *(notes if isinstance(notes, list) else [])]
    return [text for text in texts if isinstance(text, str)]


BUNDLE = Importer("bundle", declines, read)
