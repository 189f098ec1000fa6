"""The incidents of this run and of the one it is compared with: which both have, and which only one of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from spikeview.analysis.envelope import Positions
from spikeview.rules.diagnosis import Diagnosed
from spikeview.ui.alignment import Alignment

NEAR = 3
SAME, OTHER = "same batch", "other batch"


@dataclass(frozen=True, eq=False)
class Pair:
    """An incident of this run, of the other, or of both.

    `clock` is its onset by what aligns the runs, this run's where it has it. `row` is where it stands in this run: the
    last row that is not later, None before the first and after the last. `beside` is the same in the run that lacks it.
    `batch` is SAME or OTHER, empty where one of them was not recorded.
    """

    ours: Diagnosed | None
    theirs: Diagnosed | None
    clock: int
    row: int | None
    beside: int | None
    batch: str = ""

    @property
    def first(self) -> Diagnosed:
        """This run's where it has it, else the other's."""
        found = self.ours or self.theirs
        assert found is not None
        return found


def paired(ours: Sequence[Diagnosed], theirs: Sequence[Diagnosed], alignment: Alignment) -> tuple[Pair, ...]:
    """The incidents of the two views that the alignment is of, each once, in order of their onset on its clock.

    One of ours and one of theirs are the same where they began on a batch of the same id, or else within NEAR rows of
    each other; where there is a choice, the nearest are.
    """
    met: dict[int, tuple[int, str]] = {}
    taken: set[int] = set()
    for _, _, here, there, batch in sorted(_candidates(ours, theirs, alignment)):
        if here not in met and there not in taken:
            met[here] = there, batch
            taken.add(there)
    pairs = []
    for here, each in enumerate(ours):
        at = onset(each)
        other, batch = (theirs[met[here][0]], met[here][1]) if here in met else (None, "")
        pairs.append(Pair(each, other, int(alignment.ours[at]), at, alignment.beside(at), batch))
    back = Alignment(alignment.theirs, alignment.ours)
    for each in (each for there, each in enumerate(theirs) if there not in taken):
        at = onset(each)
        row = back.beside(at)
        pairs.append(Pair(None, each, int(alignment.theirs[at]), row, row))
    return tuple(sorted(pairs, key=lambda pair: pair.clock))


def onset(diagnosed: Diagnosed) -> int:
    """The position of the first bad observation."""
    return diagnosed.incident.first_bad.position


def _candidates(
    ours: Sequence[Diagnosed], theirs: Sequence[Diagnosed], alignment: Alignment
) -> Iterator[tuple[bool, int, int, int, str]]:
    """Of what could be the same, those on one batch first: whether on others, rows apart, index of each, batch."""
    places = np.array([onset(each) for each in ours], dtype=np.int64)
    batches = [_batch(each) for each in ours]
    holding = defaultdict(list)
    for here, own in enumerate(batches):
        holding[own].append(here)
    for there, each in enumerate(theirs):
        batch, ends = _batch(each), _beside(alignment, onset(each))
        near = {here for end in ends for here in _within(places, end - NEAR, end + NEAR)}
        for here in near.union(holding[batch] if batch is not None else ()):
            same = batch is not None and batches[here] == batch
            rows = min((abs(int(places[here]) - end) for end in ends), default=len(alignment.ours))
            yield not same, rows, here, there, SAME if same else "" if None in (batch, batches[here]) else OTHER


def _beside(alignment: Alignment, there: int) -> tuple[int, ...]:
    """The rows of ours beside a row of theirs: of those where our clock stands still the first and the last."""
    clock = alignment.theirs[there]
    if not alignment.ours[0] <= clock <= alignment.ours[-1]:
        return ()
    return int(np.searchsorted(alignment.ours, clock)), int(np.searchsorted(alignment.ours, clock, "right")) - 1


def _within(places: Positions, low: int, high: int) -> range:
    """The indices of the places from low to high."""
    return range(int(np.searchsorted(places, low)), int(np.searchsorted(places, high, "right")))


def _batch(diagnosed: Diagnosed) -> str | None:
    return diagnosed.view.run.text("batch_id", onset(diagnosed))
