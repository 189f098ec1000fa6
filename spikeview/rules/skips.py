"""The check for attempts that were skipped."""

from __future__ import annotations

import numpy as np

from spikeview.analysis.calibration import calibrating
from spikeview.analysis.clocks import attempts, skipped_or_declined, skips
from spikeview.rules.finding import Outcome
from spikeview.rules.verdict import Answer, passed, unknown
from spikeview.run import Run

WINDOW = 1000
RATE = 0.05
MOST = 0.5
FEW = 10


def skip_rate(run: Run) -> Answer:
    """More than RATE of some WINDOW attempts were skipped, or declined for what loss or gradient held.

    Fewer attempts than WINDOW give no rate worth a verdict, save where it is far over: MOST of FEW or more were skipped
    when the skips by which a scaler finds its level are left out.
    """
    known = run.recorded("attempted") & run.recorded("executed")
    if not known.any():
        absent = [name for name in ("attempted", "executed") if not run.recorded(name).any()]
        return unknown(*absent or ["attempted", "executed"])
    rows = np.flatnonzero(known & skipped_or_declined(run))  # few, as a rule
    count = attempts(run)
    tried = np.where(known & run.values("attempted"), count, 0)
    lost = np.maximum(skips(run)[rows], 1)
    tried[rows] = np.maximum(count[rows], lost)
    so_far, total = np.cumsum(tried), np.append(0, np.cumsum(lost))
    width = min(WINDOW, int(so_far[-1]))
    ends = so_far[rows]  # a count is largest right after a skip
    begins = np.where(ends > width, so_far[np.searchsorted(so_far, ends - width)], 0)
    worst = int(np.max(total[1:] - total[np.searchsorted(ends, begins, side="right")], initial=0))
    counts = f"{int(total[-1]):,} of {int(so_far[-1]):,} attempts skipped"
    calm = calibrating(run)[rows]
    tries, skipped = so_far[-1] - tried[rows[calm]].sum(), lost[~calm].sum()
    mostly = tries >= FEW and skipped > MOST * tries
    if worst > RATE * WINDOW or mostly:
        within = f"; up to {worst:,} within {width:,}" if width < so_far[-1] else ""
        return Answer(Outcome.FAILED, counts + within, rows)
    if worst > RATE * width:
        return Answer(Outcome.CANNOT_TELL, f"{counts}: too few to judge a rate that holds for {WINDOW:,}")
    column = "executed" if run.recorded("attempted").all() else "attempted"
    return passed(run, counts, column, ~known)
