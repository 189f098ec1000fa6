"""Where in a run its events stand, and the rows that stand out from all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from spikeview.analysis.clocks import skipped_or_declined
from spikeview.analysis.envelope import Positions
from spikeview.meaning import is_log
from spikeview.run import Run
from spikeview.ui.stretches import in_stretches, is_long

NONE: Positions = np.zeros(0, dtype=np.int64)


def positions_of(run: Run, events: Sequence[Mapping[str, Any]]) -> list[int]:
    """The position of the last row that each event was written after; the first row for one before all."""
    if not events:
        return []
    numbers = [int(event["row"]) if isinstance(event.get("row"), int | float) else -1 for event in events]
    rows = run.values("row") if "row" in run else np.arange(len(run))
    found = np.searchsorted(rows, np.array(numbers, dtype=np.int64), side="right") - 1
    return [max(0, int(each)) for each in found]


def skipped_rows(run: Run, known: Positions = NONE, same: int = 0) -> Positions:
    """The positions of the rows in which a step was due and did not execute, rising.

    `known` are those of an earlier reading of the run, of which the `same` first rows are as they were.
    """
    if is_log(run) or not is_long(run):  # a row of a log is told by the one before it
        return np.flatnonzero(skipped_or_declined(run))
    names = ("attempted", "executed", "skip_reason")
    found = in_stretches(run, names, lambda first, rows: first + np.flatnonzero(skipped_or_declined(rows)), same)
    return np.concatenate([known[known < same], *found])


def segment_starts(run: Run, known: Positions = NONE, same: int = 0) -> Positions:
    """The positions of the first rows of later segments, rising; `known` and `same` as above."""
    return run.once("segment_starts", lambda: _segment_starts(run, known, same))


def _segment_starts(run: Run, known: Positions, same: int) -> Positions:
    if "segment" not in run:
        return NONE
    if not is_long(run):
        return np.flatnonzero(np.diff(run.values("segment"))) + 1
    found = in_stretches(
        run,
        ("segment",),
        lambda first, rows: (first, rows.values("segment")[[0, -1]], _changes(rows)),
        max(0, same - 1),
    )
    inside = [first + changes for first, _, changes in found]
    between = [first for (_, before, _), (first, ends, _) in pairwise(found) if before[1] != ends[0]]
    return np.unique(np.concatenate([known[known < same], *inside, between]).astype(np.int64))


def _changes(rows: Run) -> Positions:
    return np.flatnonzero(np.diff(rows.values("segment"))) + 1
