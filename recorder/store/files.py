"""Files replaced as a whole, so that a crash leaves the old one or the new one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def temporary_of(path: Path) -> Path:
    """Where a file is written before it is put in place; what lies there after a crash was never finished."""
    return path.with_name(f"_tmp-{path.name}")


def replace_file(path: Path, data: bytes) -> None:
    """Put `data` in place of the file at `path`: a reader finds the old file or the new one, never a mixture."""
    temporary = temporary_of(path)
    try:
        temporary.write_bytes(data)
        put_in_place(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def put_in_place(temporary: Path, path: Path) -> None:
    """Rename a finished file, once its bytes are on the disk, and make the rename itself last."""
    fd = os.open(temporary, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    temporary.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Return once the names in a directory are on the disk."""
    if os.name == "nt":  # Windows cannot open a directory to sync it
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
