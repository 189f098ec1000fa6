"""Memory in use: allocated on the accelerator, else resident in the process."""

from __future__ import annotations

import os
from contextlib import suppress

import torch

_STATM = "/proc/self/statm"


class MemoryGauge:
    """Reads the memory of one device. On a CPU it is the resident set where the system tells it cheaply (Linux)."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._file: int | None = None
        if device.type == "cpu":
            with suppress(OSError, AttributeError):
                self._file = os.open(_STATM, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> int | None:
        """Bytes, None where it cannot be told."""
        if self._device.type == "cuda":
            return torch.cuda.memory_allocated(self._device)
        if self._file is None:
            return None
        return int(os.pread(self._file, 128, 0).split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
