"""Files that survive a crash: appended with one write a record, or replaced as a whole."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

# macOS and Windows have no fdatasync.
_sync_data = getattr(os, "fdatasync", os.fsync)
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


class AppendFile:
    """A file that only grows, by whole records: a record that could not be written in full leaves no trace."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, _APPEND, 0o644)
        self._size = os.fstat(self._fd).st_size
        self._torn = False

    def append(self, record: bytes) -> None:
        """Write one record. Raises OSError, with the file as it was before, where it cannot be written."""
        if self._torn:
            self._restore()
        try:
            written = os.write(self._fd, record)
            while written < len(record):
                written += os.write(self._fd, record[written:])
        except OSError:
            self._torn = True
            with suppress(OSError):  # tried again before the next record; a reader drops a torn tail
                self._restore()
            raise
        self._size += written

    def sync(self) -> None:
        """Return once all records are on the disk. Raises FileNotFoundError where the file was deleted meanwhile."""
        _sync_data(self._fd)
        self.check()

    def check(self) -> None:
        """Raise FileNotFoundError where the file has no name left: what is written to it then is lost."""
        if os.fstat(self._fd).st_nlink == 0:
            raise FileNotFoundError(f"{self.path} was deleted while it was written; the rows in it are lost")

    def close(self) -> None:
        """No more records."""
        os.close(self._fd)

    def _restore(self) -> None:
        os.ftruncate(self._fd, self._size)
        self._torn = False


def replace_file(path: Path, data: bytes) -> None:
    """Put `data` in place of the file at `path`: a reader finds the old file or the new one, never a mixture."""
    temporary = path.with_name(f"_tmp-{path.name}")
    temporary.write_bytes(data)
    put_in_place(temporary, path)


def put_in_place(temporary: Path, path: Path) -> None:
    """Rename a finished file, once its bytes are on the disk, and make the rename itself last."""
    fd = os.open(temporary, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    temporary.replace(path)
    _sync_directory(path.parent)


def _sync_directory(path: Path) -> None:
    if os.name == "nt":  # Windows cannot open a directory to sync it
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
