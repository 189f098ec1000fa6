"""Where it takes more than usual, or less, to be out: after an announced change of the data, and after a resume."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.run import Floats, Run

STEADY = 64
AFTER = 17
ANNOUNCED, RESUMED = 2.0, 0.6


def leeway(run: Run, phase: str, since: int = 0) -> Floats:
    """[rows]: the factor in a signal's threshold, from a row on.

    Where the loop itself records that its data change, a loss that moves with them is no news; a loss that moves twice
    as far is. The first update after a resume is the one that lost state shows in, unless the optimizer's was measured
    to be as it was.
    """
    rows, factor = (_first_after_resume(run), RESUMED) if phase == "update" else (_announced(run), ANNOUNCED)
    rows = rows[rows >= since] - since
    if not len(rows):
        return np.broadcast_to(1.0, len(run) - since)
    factors = np.ones(len(run) - since)
    factors[rows] = factor
    return factors


def _announced(run: Run) -> NDArray[np.int64]:
    """The AFTER rows from each announcement on."""
    rows = np.unique(announcements(run)[:, None] + np.arange(AFTER))
    return rows[rows < len(run)]


def announcements(run: Run) -> NDArray[np.int64]:
    """The positions at which a field of the user's changed, for AFTER rows or more, after STEADY rows without.

    A field that changes with every batch, such as its length, announces nothing.
    """
    return run.once("announcements", lambda: _announcements(run))


def _announcements(run: Run) -> NDArray[np.int64]:
    found = []
    for name in run.table.column_names:
        if name.startswith("user_"):
            changes = _changes(run, name)
            steady = np.diff(changes, prepend=0) >= STEADY
            lasts = np.diff(changes, append=len(run) + AFTER) >= AFTER
            found.append(changes[steady & lasts])
    return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)


def _changes(run: Run, name: str) -> NDArray[np.int64]:
    return np.flatnonzero(run.made(f"changes of {name}", lambda run: _changed(run, name), back=1))


def _changed(run: Run, name: str) -> Mask:
    """[rows]: with another value than the row before."""
    codes = np.asarray(run.table[name].combine_chunks().dictionary_encode().indices.fill_null(-1))
    return np.append(False, np.diff(codes) != 0)[: len(run)]


def _first_after_resume(run: Run) -> NDArray[np.int64]:
    """The first row that executed in each segment but the first, where the optimizer's state may be lost."""
    if "segment" not in run or (run.values("segment") == run.values("segment")[:1]).all():
        return np.zeros(0, dtype=np.int64)
    segments, rows = run.values("segment"), np.flatnonzero(run.values("executed"))
    first: NDArray[np.int64] = rows[np.diff(segments[rows], prepend=segments[:1]) != 0]
    whole = _optimizer_came_back(run)
    return first[~np.isin(np.searchsorted(segments, segments[first]), whole)]


def _optimizer_came_back(run: Run) -> NDArray[np.int64]:
    """The positions at which a resume begins that was measured to have the optimizer as it was at the checkpoint."""
    told = [event for event in run.events if event.get("kind") == "resume" and isinstance(event.get("row"), int)]
    before = [event["row"] for event in told if "optimizer" in (event.get("came_back") or ())]
    if not before or "row" not in run:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.isin(run.values("row") - 1, before))
