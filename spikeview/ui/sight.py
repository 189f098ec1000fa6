"""Which rows are in sight, and the way back to those that were."""

from __future__ import annotations

from PySide6.QtCore import QObject

from spikeview.ui import visible
from spikeview.ui.history import History
from spikeview.ui.state import State
from spikeview.ui.theme import Theme

NEAREST = 1e-9  # of what is in sight


class Sight(State):
    """The range of a run that its panels show; the ranges before it are kept."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(theme, parent)
        self.history = History()

    def show_range(self, first: float, last: float, gesture: str = "") -> None:
        """Show the rows from first to last, as near to it as the run allows; `gesture` joins what is one step back."""
        if self.shown is not None and self._see(first, last, gesture):
            self.range_changed.emit()

    def show_all(self) -> None:
        if self.shown is not None:
            self.show_range(*visible.whole(len(self.run)))

    def go_back(self, by: int) -> None:
        """To the range that was in sight before (-1), or forward to the one after (1)."""
        found = self.history.go(by)
        while found is not None and self.shown is not None and self._is_in_sight(visible.within(*found, len(self.run))):
            found = self.history.go(by)
        if found is None:
            self.told.emit("No earlier zoom." if by < 0 else "No later zoom.")
        elif self.shown is not None:
            self.range = visible.within(*found, len(self.run))
            self.range_changed.emit()

    def _see(self, first: float, last: float, gesture: str = "") -> bool:
        """Take a range without a word; whether it is another one than before."""
        allowed = visible.within(first, last, len(self.run))
        if self._is_in_sight(allowed):
            return False
        self.range = allowed
        self.history.visit(allowed, gesture)
        return True

    def _is_in_sight(self, allowed: visible.Range) -> bool:
        """Whether a range is the one in sight: one that was zoomed to and back may differ by a rounding."""
        apart = max(abs(ours - other) for ours, other in zip(self.range, allowed, strict=True))
        return apart <= NEAREST * (allowed[1] - allowed[0])

    def _see_anew(self) -> None:
        """All of another run, without a way back to the one before."""
        self.range = visible.whole(len(self.run))
        self.history.clear()
        self.history.visit(self.range, "")
