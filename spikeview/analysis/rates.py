"""Where the learning rate jumped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spikeview.run import Floats, Run

JUMP = 2.5
RECENT = 17


@dataclass(frozen=True)
class Rates:
    """The learning rates that executed steps ran under: `places` are their positions, in order.

    `jumps` index them: a rate JUMP times the largest of the RECENT ones before it, or more.
    """

    places: NDArray[np.int64]
    values: Floats
    jumps: NDArray[np.int64]

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
    places = np.flatnonzero(run.values("executed").astype(np.bool_) & run.recorded("lr"))
    values = run.values("lr")[places]
    rising = np.flatnonzero((values[1:] > 0) & (values[1:] >= JUMP * values[:-1])) + 1
    jumps = [at for at in rising.tolist() if 0 < JUMP * values[max(0, at - RECENT) : at].max() <= values[at]]
    return Rates(places, values, np.array(jumps, dtype=np.int64))
