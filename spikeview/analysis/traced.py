"""Traced: what was found of a signal on every row, kept so that more rows can follow."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spikeview.analysis.baseline import Baseline, baseline
from spikeview.analysis.drift import Drift
from spikeview.analysis.levels import Levels
from spikeview.analysis.outliers import AFRESH, Judged, Passes
from spikeview.analysis.signals import Scale, Signal
from spikeview.analysis.track import Counts, Track
from spikeview.growth import Grown

COLUMNS = ("values", "center")
MASKS = ("out", "habitual", "far", "healthy", "held")


@dataclass(frozen=True)
class Traced:
    """What was judged of all rows, `whole`, and the arrays that it lies in, which grow.

    `passes` and `levels` are what is known of the rows before the one to go on from; of the levels that may be nothing.
    `drift` is where they drifted and how far, None where they never did.
    """

    signal: Signal
    scale: Scale
    columns: tuple[Grown, ...]
    masks: tuple[Grown, ...]
    judged: Grown
    distances: Grown
    counts: Grown | None
    whole: Judged
    passes: Passes = AFRESH
    levels: Levels | None = None
    drift: tuple[Grown, Grown] | None = None

    @classmethod
    def of(cls, signal: Signal, scale: Scale, found: Judged) -> Traced:
        """Of what was found on all rows."""
        track = found.track
        columns = tuple(Grown.of(getattr(track, name)) for name in COLUMNS)
        masks = tuple(Grown.of(getattr(found, name)) for name in MASKS)
        counts = None if track.counts is None else Grown.of(track.counts)
        return cls(signal, scale, columns, masks, Grown.of(track.judged), Grown.of(track.distances), counts, found)

    def followed(self, row: int, scale: Scale, tail: Judged) -> Traced:
        """With what was found from a row on, the one that `passes` are known of."""
        before, track = self.passes[-1], tail.track
        named = zip(self.columns, COLUMNS, strict=True), zip(self.masks, MASKS, strict=True)
        columns = tuple(known.followed(row, getattr(track, name)) for known, name in named[0])
        masks = tuple(known.followed(row, getattr(tail, name)) for known, name in named[1])
        distances = self.distances.followed(max(before.count - 1, 0), track.distances[max(len(before.kept) - 1, 0) :])
        counts = self._counts(row, track)
        values, center = (each.values for each in columns)
        up_to = None if counts is None else counts.values
        made = Track.of(values, center, distances.values, up_to, self.signal.floor)
        out, habitual, far, healthy, held = (each.values for each in masks)
        whole = Judged(made, out, habitual, far, healthy, held)
        judged = self.judged.followed(row, track.judged)
        return Traced(
            self.signal, scale, columns, masks, judged, distances, counts, whole, self.passes, self.levels, self.drift
        )

    def _counts(self, row: int, track: Track) -> Grown | None:
        """How many rows up to each are healthy; None where all are."""
        if self.counts is None and track.counts is None:
            return None
        known = self.counts or Grown.of(np.arange(1, row + 1, dtype=np.int32))
        more = np.arange(1, len(track.values) + 1, dtype=np.int32) if track.counts is None else track.counts
        tail: Counts = np.int32(self.passes[-1].count) + more
        return known.followed(row, tail)

    def drifting(self, found: Drift) -> Traced:
        """With where its levels drifted, on all rows."""
        drift = None if found.deviation is None else (Grown.of(found.rows), Grown.of(found.deviation))
        return replace(self, drift=drift, levels=None)

    def calm(self, row: int, tail: Drift) -> Traced:
        """With levels that drift nowhere from a row on."""
        if self.drift is None:
            return self
        deviation = np.full(len(tail.rows), np.nan) if tail.deviation is None else tail.deviation
        return replace(self, drift=(self.drift[0].followed(row, tail.rows), self.drift[1].followed(row, deviation)))

    def baseline(self) -> Baseline:
        """In the signal's own units."""
        found = self.whole
        return baseline(found.track, self.scale, found.habitual, self.judged.values, found.far)
