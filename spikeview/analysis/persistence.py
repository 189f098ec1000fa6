"""How an incident goes on: back in its baseline, held out of it, or never back."""

from __future__ import annotations

import numpy as np

from recorder.schema import Mask
from spikeview.run import Floats

WINDOW = 16
SUSTAINED = 3.0
CRITICAL = 10.0
LEAST = 3

TRANSIENT, PERSISTENT, DIVERGED = "transient", "persistent", "diverged"


def persistence(deviation: Floats, nonfinite: Mask, to_the_end: bool) -> str:
    """From a signal's distance from its baseline on the rows of an incident and the WINDOW after it.

    `deviation` is in MADs towards the bad side, NaN where there is none; a `nonfinite` row is infinitely far.
    Diverged: out of the band up to the last row of the run (`to_the_end`), for LEAST rows or more. Persistent:
    in some WINDOW of rows the smallest is over SUSTAINED and the largest over CRITICAL, the two conditions of the
    K2-V2 technical report (section 3.5.2).
    """
    far = np.where(nonfinite, np.inf, deviation)
    far = far[~np.isnan(far)]
    inside = np.flatnonzero(far <= SUSTAINED)
    starts, ends = np.append(0, inside + 1), np.append(inside, len(far))
    if to_the_end and ends[-1] - starts[-1] >= LEAST:
        return DIVERGED
    long = ends - starts >= WINDOW
    if any(far[start:end].max() > CRITICAL for start, end in zip(starts[long], ends[long], strict=True)):
        return PERSISTENT
    return TRANSIENT
