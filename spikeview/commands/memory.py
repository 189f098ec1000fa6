"""No more memory than the machine has: a file can be made to fill any, and then others would be the ones to suffer."""

from __future__ import annotations

import ctypes
import os
import sys

# glibc's names for what `mallopt` takes.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_NEVER = 2**31 - 1


def keep_within_memory() -> None:
    """From now on. What would go beyond raises MemoryError, where the system can be told so."""
    if sys.platform != "linux":
        return
    import resource

    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [machine, *(limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))


def keep_freed_memory() -> None:
    """From now on, for the next array, as far as the C library can be told so.

    A diagnosis makes arrays of a whole run one after the other. To ask the system for each anew, and have it cleared,
    takes as long as what is done with them.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_MMAP_MAX, 0)
        mallopt(_TRIM_THRESHOLD, _NEVER)
