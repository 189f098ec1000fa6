"""Where the learning rate jumped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spikeview.cells import chosen
from spikeview.run import Floats, Run

JUMP = 2.5
RECENT = 17
LONG = 50
RISING = 1.3


@dataclass(frozen=True)
class Rates:
    """The learning rates that executed steps ran under: `places` are their positions, in order.

    `jumps` index them: a rate JUMP times the largest of the RECENT ones before it, or more.
    """

    places: NDArray[np.int64]
    values: Floats
    jumps: NDArray[np.int64]

    def rise(self, until: int) -> tuple[int, float, float] | None:
        """Where the rate rises up to a position, JUMP times over the last LONG steps and still over the RECENT ones.

        The position LONG steps before, and the rates there and here.
        """
        now = int(np.searchsorted(self.places, until, side="right")) - 1
        if now < LONG:
            return None
        then, recent, here = (float(self.values[at]) for at in (now - LONG, now - RECENT, now))
        rises = here >= RISING * recent > 0 and here >= JUMP * then > 0
        return (int(self.places[now - LONG]), then, here) if rises else None

    def jump(self, until: int) -> tuple[int, float, float] | None:
        """The last jump among the RECENT steps up to a position: where, and the rates before and after it."""
        end = int(np.searchsorted(self.places, until, side="right"))
        last = int(np.searchsorted(self.jumps, end)) - 1
        if last < 0 or self.jumps[last] < end - RECENT:
            return None
        at = int(self.jumps[last])
        return int(self.places[at]), float(self.values[at - 1]), float(self.values[at])


def rates(run: Run) -> Rates:
    """The learning rates of a run and their jumps."""
    return run.once("rates", lambda: _rates(run))


def _rates(run: Run) -> Rates:
    stepped = run.values("executed").astype(np.bool_) & run.recorded("lr")
    places, values = np.flatnonzero(stepped), chosen(run.values("lr"), stepped)
    rising = np.flatnonzero((values[1:] > 0) & (values[1:] >= JUMP * values[:-1])) + 1
    jumps = [at for at in rising.tolist() if 0 < JUMP * values[max(0, at - RECENT) : at].max() <= values[at]]
    return Rates(places, values, np.array(jumps, dtype=np.int64))
