"""What lies at a URL: the files of a run, or one file."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from recorder.store.capture_names import CAPTURES
from recorder.store.documents import MANIFEST
from recorder.store.folder import TABLES
from spikeview.format import count
from spikeview.importers.elsewhere.system import scheme_of, system_of
from spikeview.importers.errors import RunError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_MOST_FILES = 100_000


@dataclass(frozen=True)
class Remote:
    """What lies at a URL: by the name within a run, or "" for a single file, the path in the system and the bytes."""

    system: FileSystem
    files: dict[str, tuple[str, int]]


def listed(url: str) -> Remote:
    """What lies at a URL. Raises RunError where it is nothing to be read, and what the system raises."""
    from pyarrow.fs import FileSelector, FileType

    system, path = system_of(url)
    infos = []
    with suppress(NotADirectoryError):
        infos = system.get_file_info(FileSelector(path, allow_not_found=True))
        for table in (*TABLES, CAPTURES):
            infos += system.get_file_info(FileSelector(_joined(path, table), recursive=True, allow_not_found=True))
    if len(infos) > _MOST_FILES:
        raise RunError(f"{url}: holds more than {count(_MOST_FILES)} files, so it is no run; give the run itself")
    files = {_within(path, info.path): (info.path, info.size or 0) for info in infos if info.type != FileType.Directory}
    if MANIFEST in files:
        return Remote(system, files)
    alone = system.get_file_info(path)
    if alone.type == FileType.File:
        return Remote(system, {"": (path, alone.size or 0)})
    if infos:
        raise RunError(f"{url}: holds no {MANIFEST}, so it is not a run; give the directory that the recorder wrote")
    raise RunError(f"{url}: is not there; check every name in the URL")


def _within(path: str, name: str) -> str:
    within = name.removeprefix(path).lstrip("/")
    return unquote(within) if scheme_of(path) in ("http", "https") else within  # as a page of links has it


def _joined(path: str, name: str) -> str:
    return f"{path}/{name}" if path and name else path or name
