"""Where a signal that left its baseline is back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from recorder.schema import Mask
from spikeview.analysis.lazy import Positions
from spikeview.analysis.track import Band, Track
from spikeview.cancelling import checkpoint
from spikeview.run import Floats

BAND = 3.0
RECOVERED = 5
BEFORE = -1


@dataclass(frozen=True)
class Episodes:
    """Where a signal was out, from each of its `onsets` until it was back: `bad` is [rows].

    `ends` are the rows where it is back, the length where it is not, and `known` those before which that shows. `bands`
    has what each is measured by, a centre and a spread. One that began before these rows has the onset BEFORE.
    """

    bad: Mask
    onsets: Positions
    ends: Positions
    known: Positions
    bands: Sequence[Band]

    def left(self, row: int, distance: Callable[[Band], float]) -> tuple[bool, Band | None]:
        """Whether rows before one show by themselves where the signal is out, and the band of what goes on there.

        `distance` is how far out of a band the last row before was: inside it the signal may have been on its way back.
        """
        crossing = np.flatnonzero((self.onsets < row) & (self.known > row))
        if not len(crossing):
            return True, None
        last = int(crossing[-1])
        goes_on = len(crossing) == 1 and self.ends[last] > row and distance(self.bands[last]) > BAND
        return goes_on, self.bands[last]


class Recovery:
    """A track, and the rows of it that count as judged."""

    def __init__(self, track: Track, judged: Mask, side: int) -> None:
        self._track, self._side = track, side
        self._rows = None if judged.all() else np.flatnonzero(judged)
        self._values: Floats = track.values if self._rows is None else track.values[self._rows]
        self._length = len(judged)

    def episodes(self, out: Positions, left: Band | None = None) -> Episodes:
        """Those that rows which are `out` begin, measured by the baseline that the signal left.

        And the one that goes on from the rows before, if the signal had `left` a band there.
        """
        bad = np.zeros(self._length, dtype=np.bool_)
        found: list[tuple[int, int, int]] = []
        bands: list[Band] = []
        centers, spreads = self._track.center[out].tolist(), self._track.spread[out].tolist()
        begun = [] if left is None else [(BEFORE, *left)]
        end = BEFORE
        for onset, center, spread in [*begun, *zip(out.tolist(), centers, spreads, strict=True)]:
            if onset >= end:
                checkpoint()
                end, known = self._back(max(onset, 0), center, spread)
                bad[max(onset, 0) : end] = True
                found.append((onset, end, known))
                bands.append((center, spread))
        onsets, ends, shown = np.array(found, dtype=np.int64).reshape(-1, 3).T
        return Episodes(bad, onsets, ends, shown, bands)

    def _back(self, onset: int, center: float, spread: float) -> tuple[int, int]:
        """The first of RECOVERED judged rows in a row inside the band, and the row after the last of them.

        The length of the run and beyond where there is none.
        """
        first = onset if self._rows is None else int(np.searchsorted(self._rows, onset))
        length = 4 * RECOVERED
        while True:
            inside = self._side * (self._values[first : first + length] - center) / spread <= BAND
            back = inside[: 1 - RECOVERED].copy()
            for ahead in range(1, RECOVERED):
                back &= inside[ahead : len(inside) - RECOVERED + 1 + ahead]
            at = int(back.argmax()) if len(back) else 0
            if len(back) and back[at]:
                return self._row(first + at), self._row(first + at + RECOVERED - 1) + 1
            if first + length >= len(self._values):
                return self._length, self._length + 1
            length *= 2

    def _row(self, place: int) -> int:
        return place if self._rows is None else int(self._rows[place])
