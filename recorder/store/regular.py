"""What is read of a run directory: regular files that lie in it, and nothing else."""

from __future__ import annotations

import errno
import stat
from pathlib import Path

from recorder.store.errors import StoreError

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_RESTORE = "restore the file from a copy"


def regular_size(path: Path, run: Path) -> int:
    """The size in bytes of a regular file of a run.

    It is looked at before it is opened: a pipe would be waited for, a device never ends, and a link may lead
    anywhere. Raises FileNotFoundError where there is nothing, StoreError where there is something else, and the
    OSError of a path that cannot be looked at.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise StoreError(path, "is a link to a file that is not there", _RESTORE) from None
        raise
    except ValueError as error:  # a NUL, or what no file name here can hold
        raise StoreError(path, f"is no path on this system ({error})", "check the path") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StoreError(path, "is a link that leads back to itself", _RESTORE) from None
        raise
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), "something else")
        raise StoreError(path, f"is {kind}, and must be a file", _RESTORE)
    if not path.resolve().is_relative_to(run.resolve()):
        raise StoreError(path, "is a link that leads out of the run", "put a copy of the file in its place")
    return found.st_size
