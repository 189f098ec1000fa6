"""Which row of one optimizer an observation belongs to."""

from __future__ import annotations

from recorder.measures import Measures


class Rows:
    """The open row, `row`, and `ahead`, one that comes about only if the optimizer steps again in the transition.

    `opened` are all rows of the transition. `is_deep` tells of the open one.
    """

    def __init__(self) -> None:
        self.row: Measures | None = None
        self.ahead: Measures | None = None
        self.opened: list[Measures] = []
        self.is_deep = False
        self._evaluations: int | None = None

    def forward_row(self) -> Measures | None:
        """The row that a forward observation belongs to: a second loss after a step opens the next row's."""
        row = self.row
        if row is None or self._evaluations is not None:
            return self._closure_row()
        return self._next_row() if row.attempted and row.loss is not None else row

    def backward_row(self) -> Measures | None:
        """The row that a gradient measured now belongs to: after a step it is no longer that step's."""
        if self.row is None or self._evaluations is not None:
            return self._closure_row()
        return self._next_row() if self.row.attempted else self.row

    def _closure_row(self) -> Measures | None:
        """Within a closure the row holds its first evaluation; later ones go nowhere."""
        return self.row if self._evaluations in (None, 0) else Measures({})

    def _next_row(self) -> Measures:
        """Measures for a row that only comes about if the optimizer steps again within the transition."""
        if self.ahead is None:
            self.ahead = Measures({})
        return self.ahead
