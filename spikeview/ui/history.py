"""The ranges that were in sight, to go back to and forward again."""

from __future__ import annotations

from spikeview.ui.visible import Range

KEPT = 200


class History:
    """A range that came by the same gesture as the one before takes its place: a wheel is one step, not twenty."""

    def __init__(self) -> None:
        self._ranges: list[Range] = []
        self._at = -1
        self._gesture = ""

    def clear(self) -> None:
        self._ranges, self._at, self._gesture = [], -1, ""

    def visit(self, shown: Range, gesture: str) -> None:
        """Keep a range; `gesture` is empty for one that stands by itself."""
        if gesture and gesture == self._gesture and self._at == len(self._ranges) - 1:
            self._ranges[self._at] = shown
        else:
            self._ranges = [*self._ranges[: self._at + 1], shown][-KEPT:]
            self._at = len(self._ranges) - 1
        self._gesture = gesture

    def go(self, by: int) -> Range | None:
        """The range so many steps on (or, negative, back); None where there is none."""
        self._gesture = ""
        if not 0 <= self._at + by < len(self._ranges):
            return None
        self._at += by
        return self._ranges[self._at]
