"""The one error of opening a run."""

from __future__ import annotations


class RunError(Exception):
    """A path cannot be opened as a run. Its text is one line: which path, what is wrong, what to do."""
