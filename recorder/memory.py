"""Memory in use: allocated on the accelerator, else resident in the process."""

from __future__ import annotations

import os
from contextlib import suppress
from math import inf
from time import perf_counter

import torch

_STATM = "/proc/self/statm"
_FRESH = 0.01
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class MemoryGauge:
    """Reads the memory of one device. On a CPU it is the resident set where the system tells it cheaply (Linux).

    The kernel takes 10 microseconds to add that up, so a reading of less than 10 ms ago is given again.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._file: int | None = None
        self._resident, self._read_at = 0, -inf
        if device.type == "cpu":
            with suppress(OSError, AttributeError):
                self._file = os.open(_STATM, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> int | None:
        """Bytes, None where it cannot be told."""
        if self._device.type == "cuda":
            return torch.cuda.memory_allocated(self._device)
        if self._file is None:
            return None
        now = perf_counter()
        if now - self._read_at > _FRESH:
            self._resident, self._read_at = int(os.pread(self._file, 128, 0).split()[1]) * _PAGE, now
        return self._resident

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
