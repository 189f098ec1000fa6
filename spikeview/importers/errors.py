"""The one error of opening a run, and what is said with it of a log whose columns nobody could guess."""

from __future__ import annotations

from collections.abc import Sequence


class RunError(Exception):
    """A path cannot be opened as a run. Its text is one line: which path, what is wrong, what to do."""


class UnnamedError(RunError):
    """No column of a log is named like a loss or a gradient norm. `names` are those that can be mapped."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        super().__init__(text)
        self.names = tuple(names)
