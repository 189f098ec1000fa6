"""Which rows of a journal can still be replaced, and where they lie."""

from __future__ import annotations

RECENT = 1024


class RecentRows:
    """The positions of the last rows and of pending ones, by key: (row, ...).

    Rows of one number stay together and numbers never fall, so a row that is not recent was not recorded twice.
    """

    def __init__(self) -> None:
        self.positions: dict[object, int] = {}
        self.pending: set[int] = set()

    def check_new(self, key: tuple[object, ...], last: object) -> None:
        """Raise ValueError where a row of this key cannot follow row `last`."""
        if key in self.positions:
            raise ValueError(f"row {key} is recorded already; amend it")
        number = key[0]
        if isinstance(number, int) and isinstance(last, int) and number < last:
            raise ValueError(f"row {number} cannot follow row {last}")

    def position(self, key: object) -> int:
        """Where a row lies. Raises KeyError where it is too late to replace it."""
        position = self.positions.get(key)
        if position is None:
            raise KeyError(f"row {key} is not among the rows that can still be amended")
        return position

    def add(self, key: object, position: int) -> None:
        """A row was appended."""
        self.positions[key] = position
        # Few of them, because freeing 65,536 keys at once would stop the training for milliseconds.
        if len(self.positions) > 2 * RECENT + len(self.pending):
            oldest = position - RECENT
            kept = ((key, at) for key, at in self.positions.items() if at > oldest or at in self.pending)
            self.positions = dict(kept)
