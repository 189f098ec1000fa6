"""Rows that could not be kept, so that the run can say so once it goes on."""

from __future__ import annotations


class LostRows:
    """How many rows of one table are gone, and the numbers of the first and the last of them."""

    def __init__(self) -> None:
        self.count = 0
        self.first: object = None
        self.last: object = None

    def add(self, number: object) -> None:
        """One more."""
        self.first = number if self.count == 0 else self.first
        self.last = number
        self.count += 1

    def __str__(self) -> str:
        rows = f"row {self.first}" if self.first == self.last else f"rows {self.first} to {self.last}"
        return f"{self.count} could not be kept ({rows})" if self.count else "none was lost"
