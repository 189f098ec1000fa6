"""One writer at a time for each rank of a run: a lock that ends with the process that holds it."""

from __future__ import annotations

import os
from contextlib import suppress
from os.path import samestat
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from recorder.store.errors import StoreError

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows has no record locks; there a second writer is refused within one process only
    fcntl = None

_HELD: WeakValueDictionary[tuple[int, str], WriterLock] = WeakValueDictionary()


class WriterLock:
    """Held from creation to `release`. Raises StoreError where another writer is at work.

    The system drops a record lock with the process, also one that was killed, and a forked child does not share it. It
    does not tell two writers of one process apart, so those are remembered here.
    """

    def __init__(self, run: Path, folder: Path) -> None:
        self._fd: int | None = None
        key = (os.getpid(), str(folder.resolve()))
        if key in _HELD:
            raise StoreError(run, "is being recorded by this process already", "close() that recorder first")
        self._run = run
        self._path = folder / "_lock"
        if fcntl is not None:
            self._fd = _locked(run, self._path)
        _HELD[key] = self

    def is_in_place(self) -> bool:
        """Whether the lock still is the file of its name, so that another writer would meet it."""
        if self._fd is None:
            return self._path.parent.is_dir()
        try:
            return samestat(self._path.stat(), os.fstat(self._fd))
        except OSError:
            return False

    def renew(self) -> None:
        """Take the lock again, in a directory that was made anew. Raises StoreError where another writer has it."""
        if fcntl is not None:
            old, self._fd = self._fd, _locked(self._run, self._path)
            if old is not None:
                os.close(old)

    def release(self) -> None:
        """Let the next writer in. A forked child has nothing to release."""
        for key in [key for key, lock in _HELD.items() if lock is self]:
            if key[0] == os.getpid():
                del _HELD[key]
                self._drop()

    def _drop(self) -> None:
        if self._fd is not None:
            with suppress(OSError):
                if self.is_in_place():
                    self._path.unlink(missing_ok=True)
            with suppress(OSError):
                os.close(self._fd)
            self._fd = None


def is_held(folder: Path) -> bool:
    """Whether a writer is at work on this table; false where the system cannot tell."""
    if (os.getpid(), str(folder.resolve())) in _HELD:
        return True  # to ask the system would drop the lock of our own
    try:
        fd = os.open(folder / "_lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return True
    except (OSError, AttributeError):  # a file system or a system without locks
        return False
    finally:
        os.close(fd)
    return False


def _locked(run: Path, path: Path) -> int:
    """A descriptor that holds the lock on this file, which is made where it is missing."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            os.close(fd)
            raise StoreError(
                run, "is being recorded by another process", "wait for it to end, or choose another path"
            ) from None
        except OSError:
            return fd  # a file system without locks: nothing can be told, and recording goes on
        if os.fstat(fd).st_nlink:
            return fd
        os.close(fd)  # its holder dropped the file between our opening and locking it
