"""Which rows of several ranks are of the same moment of their training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spikeview.run import Run

Numbers = NDArray[np.int64]
NONE = -1


@dataclass(frozen=True, eq=False)
class Aligned:
    """Which rows of the ranks are of the same moment.

    `positions` are [ranks, moments], NONE where a rank has no such row. Moments are in order; `steps` and `rows` are
    [moments], the number of the row that of the first rank that has one.
    """

    ranks: tuple[int, ...]
    positions: Numbers
    steps: Numbers
    rows: Numbers

    def moments(self, rank: int) -> Numbers:
        """[rows of the rank]: the moment of each."""
        return np.flatnonzero(self.positions[self.ranks.index(rank)] != NONE)


def align(runs: Mapping[int, Run]) -> Aligned:
    """The rows of all ranks side by side.

    By segment, step and micro-step, and by how often the step fell before in the segment; by the number of the row
    where a rank lacks its steps or has one of these twice. Steps that are but a count of attempts fall behind on a rank
    that declines one: then by segment and place within it, as long as all accumulate alike.
    """
    codes = _in_lockstep(list(runs.values()))
    if codes is None:
        codes = _codes([_moments(run) for run in runs.values()])
    if codes is None:
        codes = _codes([run.values("row").astype(np.int64)[:, None] for run in runs.values()])
    if codes is None:
        codes = [np.arange(len(run)) for run in runs.values()]
    alike = all(np.array_equal(code, codes[0]) for code in codes)
    moments = codes[0] if alike else np.unique(np.concatenate(codes))
    positions = np.full((len(codes), len(moments)), NONE, dtype=np.int64)
    steps, rows = (np.full(len(moments), NONE, dtype=np.int64) for _ in range(2))
    for place, run in reversed([*enumerate(runs.values())]):
        at = np.searchsorted(moments, codes[place])
        positions[place, at] = np.arange(len(run))
        steps[at], rows[at] = run.values("step"), run.values("row")
    return Aligned(tuple(runs), positions, steps, rows)


def _in_lockstep(runs: Sequence[Run]) -> list[Numbers] | None:
    """Codes by segment and place within it; None unless all steps are counts and the same rows accumulate."""
    if not all(_counts_attempts(run) for run in runs):
        return None
    codes = _codes([_places(run) for run in runs])
    if codes is None:
        return None
    first = runs[0].equals("skip_reason", "accumulating")
    for run, code in zip(runs[1:], codes[1:], strict=True):
        _, there, here = np.intersect1d(codes[0], code, assume_unique=True, return_indices=True)
        if (first[there] != run.equals("skip_reason", "accumulating")[here]).any():
            return None
    return codes


def _counts_attempts(run: Run) -> bool:
    """Whether each step is the number of attempts before it, as where the loop does not say its own."""
    names = ("row", "segment", "step", "attempted", "attempted_n")
    if not len(run) or not all(run.recorded(name).all() for name in names):
        return False
    before = run.values("attempted_n") - run.values("attempted").astype(np.int64)
    return bool((run.values("step") == before).all())


def _places(run: Run) -> Numbers:
    """[rows, 2]: the segment, and the place within it."""
    segment, row = run.values("segment").astype(np.int64), run.values("row").astype(np.int64)
    begins = np.diff(segment, prepend=segment[:1] - 1) != 0
    return np.column_stack([segment, row - np.maximum.accumulate(np.where(begins, row, row[0]))])


def _moments(run: Run) -> Numbers:
    """[rows, 4]: what tells the moment of a row, each as a whole number; no columns where it was not recorded."""
    if not run.recorded("step").all():
        return np.zeros((len(run), 0), dtype=np.int64)
    segment, step, micro = (
        run.values(name).astype(np.int64) if name in run else np.zeros(len(run), dtype=np.int64)
        for name in ("segment", "step", "micro_step")
    )
    begins = np.diff(segment, prepend=segment[:1]) != 0
    falls = np.cumsum(np.diff(step, prepend=step[:1]) < 0)
    return np.column_stack([segment, falls - np.maximum.accumulate(np.where(begins, falls, 0)), step, micro])


def _codes(moments: Sequence[Numbers]) -> list[Numbers] | None:
    """One number for each moment of each rank, in the same order; None where they tell no order of the rows."""
    told = [each for each in moments if len(each)]
    if not told or any(each.shape[1] == 0 for each in told):
        return None
    low, high = np.min([each.min(axis=0) for each in told], axis=0), np.max([each.max(axis=0) for each in told], axis=0)
    spans = [int(last) - int(first) + 1 for first, last in zip(low, high, strict=True)]
    if math.prod(spans) >= 2**62:
        return None
    codes = [np.zeros(len(each), dtype=np.int64) for each in moments]
    for code, each in zip(codes, moments, strict=True):
        for place, span in enumerate(spans if len(each) else ()):
            code *= span
            code += each[:, place] - low[place]
    return codes if all((np.diff(code) > 0).all() for code in codes) else None
