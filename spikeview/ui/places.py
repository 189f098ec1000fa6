"""Where in a run its events stand, and the rows that stand out from all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recorder.store.lazy_table import stretches
from spikeview.analysis.clocks import skipped_or_declined
from spikeview.analysis.envelope import Positions
from spikeview.cells import to_numpy
from spikeview.meaning import is_log
from spikeview.run import Run
from spikeview.ui.stretches import Job

NONE: Positions = np.zeros(0, dtype=np.int64)


def positions_of(run: Run, events: Sequence[Mapping[str, Any]]) -> list[int]:
    """The position of the last row that each event was written after; the first row for one before all."""
    if not events:
        return []
    numbers = [int(event["row"]) if isinstance(event.get("row"), int | float) else -1 for event in events]
    rows = run.values("row") if "row" in run else np.arange(len(run))
    found = np.searchsorted(rows, np.array(numbers, dtype=np.int64), side="right") - 1
    return [max(0, int(each)) for each in found]


def skipped_rows(run: Run, known: Positions = NONE, first: int = 0) -> Job[Positions]:
    """The positions of the rows in which a step was due and did not execute, rising.

    `known` are those of an earlier reading of the run, of which the rows before `first` are as they were.
    """
    if is_log(run):  # a row of a log is told by the one before it
        return Job((), lambda begin, rows: None, lambda _: np.flatnonzero(skipped_or_declined(run)))

    def make(begin: int, rows: Run) -> Positions:
        return begin + np.flatnonzero(skipped_or_declined(rows))

    return Job(
        ("attempted", "executed", "skip_reason"), make, lambda found: np.concatenate([known[known < first], *found])
    )


def segment_starts(run: Run) -> Positions:
    """The positions of the first rows of later segments, rising. Parts say which segment they are of."""
    return run.once("segment_starts", lambda: _segment_starts(run))


def _segment_starts(run: Run) -> Positions:
    if "segment" not in run:
        return NONE
    starts, start, last = [NONE], 0, None
    for said, rows in stretches(run.table):
        segments = np.array([said.segment]) if said.segment is not None else to_numpy(rows["segment"])
        changes = np.flatnonzero(np.diff(segments, prepend=segments[:1] if last is None else last))
        starts.append(start + changes)
        start, last = start + rows.num_rows, segments[-1]
    return np.concatenate(starts)
