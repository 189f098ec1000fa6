"""What can go wrong with a report."""

from __future__ import annotations


class ReportError(Exception):
    """A report that cannot be made; the message is one line: what, why, and what to do."""
