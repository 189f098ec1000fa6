"""The one error of the store."""

from __future__ import annotations

from os import PathLike


class StoreError(Exception):
    """A run cannot be read or written. Its text is one line: which path, what is wrong, what to do."""

    def __init__(self, path: str | PathLike[str], what: str, advice: str) -> None:
        self.path = str(path)
        lines = f"{self.path}: {what}; {advice}".splitlines()
        super().__init__(" ".join(line.strip() for line in lines))
