"""Ranks: the runs of all processes of one training, and what they say of the same moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spikeview.cells import Kind
from spikeview.moments import NONE, Aligned, Numbers, align
from spikeview.run import Floats, Run


@dataclass(frozen=True, eq=False)
class Spread:
    """One column over the ranks. `values` and `kinds` are [ranks, moments]; a rank without a row has not recorded it.

    `lowest`, `median` and `highest` are [moments], of the ranks whose value is finite, NaN where none is;
    `lowest_rank` and `highest_rank` name them, and `broken` the first whose value is not finite, NONE where there is
    none.
    """

    aligned: Aligned
    values: Floats
    kinds: NDArray[np.uint8]

    @cached_property
    def lowest(self) -> Floats:
        return self._extreme(np.inf, np.min)

    @cached_property
    def highest(self) -> Floats:
        return self._extreme(-np.inf, np.max)

    @cached_property
    def median(self) -> Floats:
        finite = self.kinds == Kind.FINITE
        counts = np.count_nonzero(finite, axis=0)
        ordered = np.sort(np.where(finite, self.values, np.nan), axis=0)  # NaN last
        pair = np.stack([np.maximum(counts - 1, 0) // 2, np.minimum(counts // 2, len(ordered) - 1)])
        below, above = np.take_along_axis(ordered, pair, axis=0)
        middle: Floats = below + (above - below) / 2
        return middle

    @cached_property
    def lowest_rank(self) -> Numbers:
        return self._named(np.argmin(self._filled(np.inf), axis=0), self.kinds == Kind.FINITE)

    @cached_property
    def highest_rank(self) -> Numbers:
        return self._named(np.argmax(self._filled(-np.inf), axis=0), self.kinds == Kind.FINITE)

    @cached_property
    def broken(self) -> Numbers:
        broken = (self.kinds != Kind.FINITE) & (self.kinds <= Kind.NEG_INF)
        return self._named(np.argmax(broken, axis=0), broken)

    def _filled(self, other: float) -> Floats:
        return np.where(self.kinds == Kind.FINITE, self.values, other)

    def _extreme(self, other: float, choose: Callable[..., Floats]) -> Floats:
        found = choose(self._filled(other), axis=0)
        return np.where((self.kinds == Kind.FINITE).any(axis=0), found, np.nan)

    def _named(self, places: Numbers, those: NDArray[np.bool_]) -> Numbers:
        return np.where(those.any(axis=0), np.array(self.aligned.ranks)[places], NONE)


@dataclass(frozen=True, eq=False)
class Ranks:
    """The runs of a training by their rank, in order. `notes` say which could not be read, and where they part.

    `source` gives them as they are later, and is None where they cannot be followed.
    """

    path: str
    runs: Mapping[int, Run]
    notes: Sequence[str] = ()
    source: Callable[[Ranks], Ranks] | None = field(default=None, repr=False)
    _aligned: dict[str, Aligned] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def first(self) -> Run:
        """The run of the lowest rank."""
        return next(iter(self.runs.values()))

    @property
    def optimizers(self) -> list[str]:
        """Names in order of first appearance."""
        return list(dict.fromkeys(name for run in self.runs.values() for name in run.optimizers))

    def refresh(self) -> Ranks:
        """The ranks as they are now; themselves where nothing is new. Raises RunError where none can be read."""
        return self if self.source is None else self.source(self)

    def aligned(self, optimizer: str) -> Aligned:
        """The rows of one optimizer on all ranks, side by side."""
        if optimizer not in self._aligned:
            self._aligned[optimizer] = align({rank: run.of(optimizer) for rank, run in self.runs.items()})
        return self._aligned[optimizer]

    def spread(self, column: str, optimizer: str) -> Spread:
        """One column of numbers of an optimizer over all ranks."""
        aligned = self.aligned(optimizer)
        values = np.full(aligned.positions.shape, np.nan)
        kinds = np.full(aligned.positions.shape, Kind.NOT_RECORDED, dtype=np.uint8)
        for place, run in enumerate(self.runs.values()):
            rows, there = run.of(optimizer), aligned.positions[place] != NONE
            kinds[place, there] = rows.kind(column)[aligned.positions[place, there]]
            values[place, there] = rows.values(column)[aligned.positions[place, there]].astype(np.float64)
        values[kinds >= Kind.NOT_APPLICABLE] = np.nan
        return Spread(aligned, values, kinds)
