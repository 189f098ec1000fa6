"""Baseline: what a signal has been doing on recent executed, healthy rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from recorder.schema import Mask
from spikeview.analysis.lazy import Column, LazyColumn, Positions, padded
from spikeview.analysis.signals import Scale
from spikeview.analysis.track import Track
from spikeview.run import Floats

NOWHERE: Mask = np.zeros(0, dtype=np.bool_)


@dataclass(frozen=True)
class Baseline:
    """One signal's expected value at every row, made only from the healthy rows before it.

    All are [rows]; `center`, `lower` and `upper` are in the signal's own units, where `lower` and
    `upper` stand one MAD below and above; `deviation` is the row's signed distance from the centre in MADs.
    NaN where there is no baseline yet, and in `deviation` where the row has no finite value. `habitual` says where the
    row is too far out, but no farther than the signal often is; `judged` where it has a distance from its baseline, and
    `far` where that is over the signal's threshold.
    """

    center: Column
    lower: Column
    upper: Column
    deviation: Column
    habitual: Mask = field(default_factory=lambda: NOWHERE)
    judged: Mask = field(default_factory=lambda: NOWHERE)
    far: Mask = field(default_factory=lambda: NOWHERE)

    def part(self, rows: slice) -> Baseline:
        """The baseline of a few rows."""
        center, lower, upper, deviation = (each[rows] for each in (self.center, self.lower, self.upper, self.deviation))
        return Baseline(center, lower, upper, deviation, self.habitual[rows], self.judged[rows], self.far[rows])

    def padded(self, rows: int) -> Baseline:
        """The baseline with nothing known of the rows beyond it."""
        more = np.zeros(rows - len(self.habitual), dtype=np.bool_)
        center, lower, upper, deviation = (
            padded(each, rows) for each in (self.center, self.lower, self.upper, self.deviation)
        )
        habitual, judged, far = (np.append(each, more) for each in (self.habitual, self.judged, self.far))
        return Baseline(center, lower, upper, deviation, habitual, judged, far)


def baseline(track: Track, scale: Scale, habitual: Mask, judged: Mask, far: Mask) -> Baseline:
    """A track in the signal's own units."""

    def undone(side: int) -> LazyColumn:
        def work_out(rows: Positions) -> Floats:
            scaled = track.center[rows] + side * track.spread[rows] if side else track.center[rows]
            return scale.undo(scaled, rows)

        return LazyColumn(len(track.values), work_out)

    return Baseline(undone(0), undone(-1), undone(1), track.deviation, habitual, judged, far)
