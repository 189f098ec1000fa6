"""Excerpts: a few lines of a log, cut out around what went wrong. They have no rows before it to judge it by."""

from __future__ import annotations

import numpy as np

from recorder.schema import Mask
from spikeview.analysis.track import CAUTION, Track
from spikeview.meaning import is_log, usual_stride
from spikeview.run import Floats, Run

LONGEST = 32
FEWEST = 3
ALIKE = 6.0
NORMAL = 1.482602218505602


def is_excerpt(run: Run) -> bool:
    """Whether the rows are a short piece of a log that begins in the midst of a run."""
    told = run.recorded("step")
    if not is_log(run) or len(run) > LONGEST or not told.any():
        return False
    return int(run.values("step")[told][0]) > len(run) * usual_stride(run)


def level(values: Floats, healthy: Mask, least: float, side: int) -> Track | None:
    """The level that a signal keeps in an excerpt, from its calmest rows, before the incident or after it.

    From the FEWEST calmest values on, the next one belongs to them while it is no more than ALIKE median distances from
    their median. Far in the midst of a run the level hardly moves, so one serves for all rows. None where there are
    too few values.
    """
    ordered = np.sort(side * values[healthy])
    if len(ordered) <= FEWEST:
        return None
    count = FEWEST
    while count < len(ordered) and ordered[count] - np.median(ordered[:count]) <= ALIKE * _spread(
        ordered[:count], least
    ):
        count += 1
    calm = ordered[:count]
    caution = np.full(len(values), 1 + CAUTION / count)
    center = np.full(len(values), side * float(np.median(calm)))
    spread = _spread(calm, least)
    return Track(values, center, spread * caution, caution, np.full(len(values), spread))


def _spread(values: Floats, least: float) -> float:
    """The median distance from the median, as the deviation of a normal variable with the same."""
    return max(least, NORMAL * float(np.median(np.abs(values - np.median(values)))))
