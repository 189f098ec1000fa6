"""A file that only grows, by whole records, and is patient with a full disk."""

from __future__ import annotations

import errno
import os
import time
from collections import deque
from contextlib import suppress
from os.path import samestat
from pathlib import Path

MOST_WAITING = 16 * 2**20
RETRY_NS = 250_000_000  # a full disk may take long to refuse
_AT_ONCE = 64

# macOS and Windows have no fdatasync.
_sync_data = getattr(os, "fdatasync", os.fsync)
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


class AppendFile:
    """Records go in whole or not at all. Those that the disk does not take wait in memory, in order, until it does.

    `fault` is why records wait, None where none does; `waited` is how many had to, since it was last set to 0.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fault: OSError | None = None
        self.waited = 0
        self._fd = os.open(path, _APPEND, 0o644)
        self._excess = 0
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._retry_at = 0

    def append(self, record: bytes) -> None:
        """Write one record, or let it wait. Raises OSError, keeping nothing, where too much waits already."""
        if self.fault is not None:
            self._write_waiting(_AT_ONCE)
        if self.fault is None:
            try:
                self.write(record)
                return
            except OSError as error:
                self._failed(error)
        if self._waiting_bytes + len(record) > MOST_WAITING:
            raise self._refusal()
        self._waiting.append(record)
        self.waited += 1
        self._waiting_bytes += len(record)

    def write(self, record: bytes) -> None:
        """Write one record now. Raises OSError, with the file as it was before, where the disk does not take it."""
        if self._excess:
            self._cut()
        written = os.write(self._fd, record)
        if written != len(record):
            self._write_rest(record, written)

    @property
    def waiting(self) -> int:
        """How many records wait."""
        return len(self._waiting)

    def sync(self) -> None:
        """Return once all records that do not wait are on the disk."""
        _sync_data(self._fd)

    def drain(self) -> None:
        """Write what waits, now. Raises OSError where something still has to wait."""
        self._retry_at = 0
        self._write_waiting(len(self._waiting))
        if self.fault is not None:
            raise self._refusal()

    @property
    def trouble(self) -> OSError | None:
        """What keeps this from being a file that takes records and keeps them, None where nothing does."""
        if not self.is_in_place():
            return FileNotFoundError(errno.ENOENT, "was deleted while it was written", str(self.path))
        return self.fault

    def is_in_place(self) -> bool:
        """Whether this is still the file of its name: what goes into a deleted one is lost."""
        try:
            return samestat(self.path.stat(), os.fstat(self._fd))
        except OSError:
            return False

    def size(self) -> int:
        """In bytes, without what waits. Raises OSError."""
        return os.fstat(self._fd).st_size

    def reopen(self) -> None:
        """Go on in a new file of the same name, where this one was deleted; what waits goes there."""
        fd = os.open(self.path, _APPEND, 0o644)
        self.close()
        self._fd, self._excess = fd, 0

    def close(self) -> None:
        """No more records."""
        fd, self._fd = self._fd, -1  # the number may soon be that of another file
        os.close(fd)

    def _write_waiting(self, most: int) -> None:
        if time.monotonic_ns() < self._retry_at:
            return
        for _ in range(min(most, len(self._waiting))):
            record = self._waiting.popleft()
            try:
                self.write(record)
            except BaseException as error:
                self._waiting.appendleft(record)
                if not isinstance(error, OSError):
                    raise
                self._failed(error)
                return
            self._waiting_bytes -= len(record)
        if not self._waiting:
            self.fault = None

    def _write_rest(self, record: bytes, written: int) -> None:
        """Go on where the disk took only a beginning."""
        try:
            while written < len(record):
                written += os.write(self._fd, record[written:])
        except BaseException:
            self._excess = written
            with suppress(OSError):  # tried again before the next record; a reader drops a torn tail
                self._cut()
            raise

    def _cut(self) -> None:
        """Take away the beginning of a record that could not be finished."""
        os.ftruncate(self._fd, os.fstat(self._fd).st_size - self._excess)
        self._excess = 0

    def _failed(self, error: OSError) -> None:
        self.fault = error
        self._retry_at = time.monotonic_ns() + RETRY_NS

    def _refusal(self) -> OSError:
        assert self.fault is not None
        return OSError(self.fault.errno, self.fault.strerror)  # anew: a traceback grows each time it is raised
