"""The cells behind a curve of a long run: those in sight are read from the disk, until all of them are held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spikeview.analysis.envelope import Positions
from spikeview.growth import Grown
from spikeview.run import Run
from spikeview.ui.panels.panel import ByRow, Series
from spikeview.ui.stretches import Job, found_in, rows_of

PIECE = 65_536
KEPT = 8  # more than the widest screen shows of single rows


class Behind:
    """The values and kinds of a curve, [rows].

    What is asked for before they are held is read in pieces, of which the last few are kept. `earlier` are those of an
    earlier reading of the run: rows that were the same then are not read again.
    """

    def __init__(self, run: Run, read: ByRow, earlier: Behind | None = None) -> None:
        self.run = run
        self._read = read
        self._earlier = earlier
        self._held: tuple[Grown, Grown] | None = None
        self._pieces: dict[int, Series] = {}

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns that the run will keep once the cells are held."""
        return self._read.columns if self._read.own else ()

    def hold(self) -> None:
        """Read all of them, away from the GUI thread."""
        if self._held is None:
            if self._read.own:
                values, kinds = self._read(self.run)
                self._held = Grown(values), Grown(kinds)
            else:
                self._held = self._made()
            self._earlier, self._pieces = None, {}

    def _made(self) -> tuple[Grown, Grown]:
        """What no run keeps, made stretch by stretch."""
        known = None if self._earlier is None else self._earlier._held
        same = 0 if self._earlier is None or known is None else same_cells(self._read, self.run, self._earlier.run)
        values, kinds = np.empty(len(self.run) - same), np.empty(len(self.run) - same, dtype=np.uint8)

        def put(first: int, rows: Run) -> None:
            into = slice(first - same, first - same + len(rows))
            values[into], kinds[into] = self._read(rows)

        found_in(self.run, Job(self._read.columns, put, lambda _: None), same)
        if known is None:
            return Grown.of(values), Grown.of(kinds)
        return known[0].followed(same, values), known[1].followed(same, kinds)

    def of(self, rows: slice | Positions) -> Series:
        """The values and kinds of these rows."""
        if self._held is not None:
            return self._held[0].values[rows], self._held[1].values[rows]
        if not isinstance(rows, slice):
            first = int(rows.min(initial=len(self.run)))
            values, kinds = self.of(slice(first, int(rows.max(initial=first - 1)) + 1))
            return values[rows - first], kinds[rows - first]
        first, last, _ = rows.indices(len(self.run))
        begin = first // PIECE
        pieces = [self._piece(at) for at in range(begin, max(begin + 1, -(-last // PIECE)))]
        values, kinds = pieces[0] if len(pieces) == 1 else map(np.concatenate, zip(*pieces, strict=True))
        within = slice(first - begin * PIECE, last - begin * PIECE)
        return values[within], kinds[within]

    def _piece(self, at: int) -> Series:
        found = self._pieces.get(at)
        if found is None:
            found = self._read(rows_of(self.run, at * PIECE, PIECE))
            self._pieces[at] = found
            for oldest in list(self._pieces)[:-KEPT]:
                self._pieces.pop(oldest, None)
        return found


def same_cells(read: ByRow, run: Run, earlier: Run) -> int:
    """How many of the first cells are as they were at an earlier reading.

    None where a column came since: why its cells are null is told by whether it is there.
    """
    return 0 if any((name in run) != (name in earlier) for name in read.columns) else run.unchanged_since(earlier)


@dataclass(frozen=True, eq=False)
class Column:
    """One of the two, as it is asked of an array."""

    behind: Behind
    which: int

    def __len__(self) -> int:
        return len(self.behind.run)

    def __getitem__(self, rows: slice | Positions) -> NDArray[Any]:
        return self.behind.of(rows)[self.which]
