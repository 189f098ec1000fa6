"""Exit statuses, and the error that ends a command with one line."""

from __future__ import annotations

NOTHING_FOUND = 0
FOUND = 1
UNREADABLE = 2
OUR_FAULT = 3
INTERRUPTED = 130
BROKEN_PIPE = 141


class CommandError(Exception):
    """What was asked cannot be done. Its text is one line: what, why, what to do."""
