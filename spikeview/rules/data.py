"""Checks on the data: a batch that does harm again, inputs in other units."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from spikeview.analysis.followed import follow
from spikeview.analysis.signals import nonfinite
from spikeview.cells import Kind
from spikeview.format import number, plural, shown
from spikeview.rules.finding import Outcome
from spikeview.rules.seen import Seen
from spikeview.rules.verdict import Answer, passed, too_few, unknown
from spikeview.rules.wording import name_rows, row_of
from spikeview.run import Floats, Run

MOSTLY = 0.5
MOST = 20
SHIFT = 8.0
FAR = 8.0
FLOOR = 0.1
FEW = 8


def repeated_batch(seen: Seen) -> Answer:
    """The same batch stands at the start of several incidents, and at most of the rows it came on from the first on.

    Rows that are out only by habit count too: a batch that returns with every epoch becomes one.
    """
    run = seen.run
    if not run.recorded("batch_id").any():
        return unknown("batch_id")
    firsts = [incident.first_bad.position for incident in seen.incidents]
    habits = [np.flatnonzero(baseline.habitual) for baseline in seen.baselines.values()]
    out = np.unique(np.concatenate([np.array(firsts, dtype=np.int64), *habits]))
    out = out[run.recorded("batch_id")[out]]
    if not len(firsts):
        return Answer(Outcome.NOT_APPLICABLE, "no incident")
    batches = Counter(str(batch) for batch in run.table["batch_id"].take(out).to_pylist())
    for batch, times in batches.most_common(MOST):
        came = np.flatnonzero(run.equals("batch_id", batch))
        own = np.intersect1d(came, out)
        came = came[came >= own[0]]  # what was poisoned later was harmless before
        if times > 1 and len(own) > MOSTLY * len(came):
            text = f"batch {shown(batch)} was out on {len(own):,} of the {plural(len(came), 'row')} it came on since"
            return Answer(Outcome.FAILED, f"{text}: {name_rows(run, own)}", own)
    silent = np.zeros(len(run), dtype=np.bool_)
    silent[firsts] = ~run.recorded("batch_id")[firsts]
    return passed(run, f"{plural(len(firsts), 'incident')}, no batch in two of them", "batch_id", silent)


def input_scale_shift(run: Run) -> Answer:
    """The largest input jumped from one row to the next by a factor of SHIFT, and farther than it ever does.

    Inputs that grow slowly take their baseline with them.
    """
    if not run.recorded("input_absmax").any():
        return unknown("input_absmax")
    bad = np.flatnonzero(nonfinite(run, "input_absmax"))
    if len(bad):
        return Answer(Outcome.FAILED, f"largest input not finite at {name_rows(run, bad)}", bad)
    rows = np.flatnonzero((run.kind("input_absmax") == Kind.FINITE) & (run.values("input_absmax") > 0))
    if len(rows) < FEW:
        return too_few(len(rows), "rows with inputs", FEW)
    values = run.values("input_absmax")[rows]
    logs = np.log(values)
    jumps, before = _jumps(logs)
    if not len(jumps):
        spread = f"largest input {number(float(values.min()))} to {number(float(values.max()))}, without a jump"
        return passed(run, spread, "input_absmax", ~run.recorded("input_absmax"))
    first = rows[jumps[0]]
    text = f"largest input {number(float(values[jumps[0]]))} at row {row_of(run, first)}, where it was about "
    text += number(float(np.exp(before[0]))) + (f"; jumps at {name_rows(run, rows[jumps])}" if len(jumps) > 1 else "")
    return Answer(Outcome.FAILED, text, rows[jumps])


def _jumps(logs: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Where a series leaves its baseline by SHIFT or more and by FAR MADs, and what the baseline is there."""
    if np.abs(np.diff(logs)).max() <= np.log(SHIFT) / 2:  # it never moves so far at once
        return np.zeros(0, dtype=np.int64), logs[:0]
    track = follow(logs, np.ones(len(logs), dtype=np.bool_), FLOOR)
    with np.errstate(invalid="ignore"):
        rows = np.flatnonzero(np.abs(logs - track.center) > np.log(SHIFT))
    rows = rows[np.abs(track.deviation[rows]) > FAR]
    jumps = rows[np.diff(rows, prepend=-2) > 1]
    return jumps, track.center[jumps]
