"""Observations of a whole run: each signal leaving its baseline or the finite numbers, as masks over the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.baseline import Baseline
from spikeview.analysis.calibration import calibrating
from spikeview.analysis.clocks import declined, skipped
from spikeview.analysis.drift import calm, drift
from spikeview.analysis.excerpt import is_excerpt
from spikeview.analysis.gradients import nonfinite_gradient
from spikeview.analysis.leeway import announcements, leeway
from spikeview.analysis.levels import Levels
from spikeview.analysis.observed import Observed, broken, shown
from spikeview.analysis.outliers import AFRESH, Judged, outliers
from spikeview.analysis.signals import SIGNALS, Scale, Signal, lost_loss, nonfinite, scale
from spikeview.analysis.traced import Traced
from spikeview.meaning import is_log
from spikeview.run import Run

HALF = 0.5
# So far behind the last row it is settled what was found of a row, as a rule; else so many times as far, or again.
BACK, BACK_BY, STEPS = 1024, 4, 8

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Observations:
    """What was observed of a run: the baseline of every signal that was recorded, by column, and what left them.

    `observed` is in causal order. What was found of the rows before `since` was known before. From `row` on a longer
    reading of the run can be observed by what was `traced` up to there: nothing later changes that.
    """

    run: Run
    baselines: Mapping[str, Baseline]
    observed: tuple[Observed, ...]
    traced: Mapping[str, Traced] = field(default_factory=dict)
    since: int = 0
    row: int = 0
    announced: Positions = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # values may be as large as a float can hold
def observe(run: Run, before: Observations | None = None) -> Observations:
    """The baseline of every signal that was recorded, by column, and what left them, in causal order.

    Only rows that executed feed a baseline, and rows with nothing to execute (micro-steps before the last). Where rows
    are as they were in the observations `before`, only those from the last row on are judged that it was sure up to.
    """
    scales = {signal: scale(run, signal) for signal in SIGNALS if run.recorded(signal.column).any()}
    announced = announcements(run)
    known = _going_on(run, scales, announced, before)
    since = 0 if known is None else known.row
    feeds = ~(skipped(run) | declined(run) | lost_loss(run) | nonfinite(run, "grad_norm") | nonfinite_gradient(run))
    judging = _Judging(run, feeds[since:], announced, known, since)
    judged: dict[str, _Signal] = {}
    for signal, measure in scales.items():
        weight = judged.get(signal.weight) if signal.weight else None
        judged[signal.column] = judging.signal(signal, measure, None if weight is None else weight.traced)
    observed = [each for signal in judged.values() for each in signal.observed]
    observed += shown(run, calibrating(run))
    baselines = {column: each.traced.baseline() for column, each in judged.items()}
    row = next((row for row in judging.settling if all(row in each.tail.settled for each in judged.values())), 0)
    going = {column: each.going_on(row) for column, each in judged.items()}
    return Observations(run, baselines, tuple(observed), going, since, since + row, announced)


@dataclass(frozen=True)
class _Signal:
    """A signal as it was judged: on all rows, and on those after the ones that were known."""

    traced: Traced
    tail: Judged
    levels: Mapping[int, Levels]
    observed: Sequence[Observed]

    def going_on(self, row: int) -> Traced:
        """To be gone on with from a row, or from the one that it went on from itself where none is settled."""
        if not row:
            return self.traced
        return replace(self.traced, passes=self.tail.settled[row], levels=self.levels.get(row))


@dataclass(frozen=True)
class _Judging:
    """What signals are judged with: the rows from `since` on, of which `feeds` says which may feed a baseline."""

    run: Run
    feeds: Mask
    announced: Positions
    known: Observations | None
    since: int

    @cached_property
    def settling(self) -> Sequence[int]:
        """How far from `since` on are the rows that it may be possible to go on from next, the latest first."""
        rows = len(self.feeds)
        return [rows - back for back in (BACK * BACK_BY**power for power in range(STEPS)) if back < rows]

    def signal(self, signal: Signal, measure: Scale, weight: Traced | None) -> _Signal:
        run, since, column = self.run, self.since, signal.column
        values = run.values(column)
        scaled = measure.part(slice(since, None)).apply(values[since:])
        light = np.zeros(len(scaled), dtype=np.bool_) if weight is None else _light(run, weight, since)
        old = None if self.known is None else self.known.traced[column]
        passes, factors = AFRESH if old is None else old.passes, leeway(run, signal.phase, since)
        tail = outliers(scaled, self.feeds, signal, light, factors, is_excerpt(run), passes, self.settling)
        traced = Traced.of(signal, measure, tail) if old is None else old.followed(since, measure, tail)
        observed = [] if column == "grad_norm" else [broken(run, signal)]
        whole = traced.whole
        out = Observed(column, signal.phase, "outlier", whole.out, values, whole.track.deviation, whole.held)
        observed.append(out)
        if not signal.drifts:
            return _Signal(traced, tail, {}, observed)
        traced, levels = self._drift(traced, tail)
        if traced.drift is not None:
            rows, deviation = (each.values for each in traced.drift)
            observed.append(Observed(column, signal.phase, "drift", rows, values, deviation))
        return _Signal(traced, tail, levels, observed)

    def _drift(self, traced: Traced, tail: Judged) -> tuple[Traced, Mapping[int, Levels]]:
        """With where its levels drifted, and what is known of them before the rows to go on from."""
        since, side = self.since, traced.signal.side
        if self.known is not None and traced.levels is not None:
            starts = self.announced[self.announced >= since] - since
            if (quiet := calm(tail, side, starts, traced.levels, self.settling)) is not None:
                return traced.calm(since, quiet), quiet.levels
        found = drift(traced.whole, side, self.announced, [since + row for row in self.settling])
        return traced.drifting(found), {row - since: levels for row, levels in found.levels.items()}


def _going_on(
    run: Run, scales: Mapping[Signal, Scale], announced: Positions, before: Observations | None
) -> Observations | None:
    """The observations before, where what they found of the rows before theirs holds; else None."""
    if before is None or not 0 < before.row <= run.unchanged_since(before.run) or is_log(run):
        return None
    if [signal.column for signal in scales] != list(before.traced):
        return None
    if not all(each.goes_on(before.traced[signal.column].scale) for signal, each in scales.items()):
        return None
    then = before.announced
    same = np.array_equal(announced[announced < before.row], then[then < before.row])
    return before if same else None


def _light(run: Run, weight: Traced, since: int) -> Mask:
    """[rows] from one on: under HALF of the baseline of their weight."""
    with np.errstate(invalid="ignore"):
        return run.values(weight.signal.column)[since:] < HALF * weight.baseline().center[since:]
