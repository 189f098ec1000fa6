"""The one error of the store."""

from __future__ import annotations

import os
from os import PathLike

LONGEST = 300


class StoreError(Exception):
    """A run cannot be read or written. Its text is one line: which path, what is wrong, what to do."""

    def __init__(self, path: str | PathLike[str], what: str, advice: str) -> None:
        self.path = str(path)
        what = what if len(what) <= LONGEST else f"{what[:LONGEST]}…"  # it may quote what a file holds
        lines = f"{self.path}: {what}; {advice}".splitlines()
        super().__init__(" ".join(line.strip() for line in lines))


class ReplacedError(Exception):
    """What was read before is not there any more: another run was recorded in its place."""


def cannot_read(path: str | PathLike[str], error: OSError) -> StoreError:
    """What the system says of a path that it does not let us read."""
    advice = "check its permissions" if isinstance(error, PermissionError) else "check the path"
    return StoreError(path, f"cannot be read ({os.strerror(error.errno) if error.errno else error})", advice)


def of_another_type(path: str | PathLike[str], error: Exception) -> StoreError:
    """What Arrow says of values that cannot be what their column holds."""
    return StoreError(path, f"holds values of another type than their columns ({error})", "restore it")
