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
from spikeview.analysis.drift import Levels, calm, drift
from spikeview.analysis.excerpt import is_excerpt
from spikeview.analysis.jumps import lost_gradients, steep_rates
from spikeview.analysis.lazy import Column
from spikeview.analysis.leeway import announcements, leeway
from spikeview.analysis.outliers import AFRESH, Judged, outliers
from spikeview.analysis.rates import rates
from spikeview.analysis.signals import SIGNALS, Scale, Signal, lost_loss, nonfinite, scale
from spikeview.analysis.traced import Traced
from spikeview.meaning import is_log
from spikeview.run import Floats, Kind, Run, row_by_row

HALF = 0.5
# So far behind the last row it is settled what was found of a row, as a rule; else so many times as far, or again.
BACK, BACK_BY, STEPS = 1024, 4, 8

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Observed:
    """One signal and one reason: all but names are [rows]; `deviation` only of outliers and drifts.

    `held` says where a signal that left has not come back yet, though not every row of it is out.
    """

    signal: str
    phase: str
    reason: str
    mask: Mask
    values: Floats
    deviation: Column | None = None
    held: Mask | None = None


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
    calm_rows = calibrating(run)
    feeds = ~(skipped(run) | declined(run) | lost_loss(run) | nonfinite(run, "grad_norm") | nonfinite_gradient(run))
    judging = _Judging(run, feeds[since:], announced, known, since)
    judged: dict[str, _Signal] = {}
    for signal, measure in scales.items():
        weight = judged.get(signal.weight) if signal.weight else None
        judged[signal.column] = judging.signal(signal, measure, None if weight is None else weight.traced)
    observed = [each for signal in judged.values() for each in signal.observed]
    observed += [_gradient(run, calm_rows), _cut_off(run), _skips(run, calm_rows), _still(run), _rate(run)]
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
        observed = [] if column == "grad_norm" else [_broken(run, signal)]
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


@row_by_row
def nonfinite_gradient(run: Run) -> Mask:
    """[rows]: a gradient is known to hold a NaN or Inf: by the count where it was recorded.

    Without a count a norm of NaN says so, and a step that the scaler or the loop left out for it; a norm of Inf does
    not, since a norm can overflow though every gradient is finite.
    """
    told = run.kind("grad_norm") == Kind.NAN
    told = told | run.equals("skip_reason", "amp_overflow") | run.equals("skip_reason", "nonfinite_grad")
    counted: Mask = run.recorded("grad_nonfinite_params")
    broken: Mask = np.where(counted, run.values("grad_nonfinite_params") > 0, told)
    return broken


@row_by_row
def unknown_gradient(run: Run) -> Mask:
    """[rows]: a gradient of which it is not known whether it is finite."""
    norm = run.kind("grad_norm")
    silent = (norm == Kind.NOT_RECORDED) | (norm == Kind.POS_INF) | (norm == Kind.NEG_INF)
    unknown: Mask = silent & (run.kind("grad_nonfinite_params") == Kind.NOT_RECORDED) & ~nonfinite_gradient(run)
    return unknown


@row_by_row
def overflowed_norm(run: Run) -> Mask:
    """[rows]: a norm of Inf over gradients that are all finite: the largest that there can be."""
    finite = run.recorded("grad_nonfinite_params") & (run.values("grad_nonfinite_params") == 0)
    overflowed: Mask = finite & (run.kind("grad_norm") == Kind.POS_INF)
    return overflowed


def _gradient(run: Run, calm: Mask) -> Observed:
    """Rows that say so themselves: of a skip without a norm and a count it is only known that it was skipped."""
    told = run.recorded("grad_norm") | run.recorded("grad_nonfinite_params")
    bad = told & (nonfinite_gradient(run) | nonfinite(run, "grad_norm")) & ~(calm & ~nonfinite(run, "loss"))
    column = "grad_norm" if run.recorded("grad_norm").any() else "grad_nonfinite_params"
    return Observed(column, "backward", "nonfinite", bad, run.values(column).astype(np.float64))


def _skips(run: Run, calm: Mask) -> Observed:
    return Observed("executed", "update", "skipped", skipped(run) & ~calm, np.zeros(len(run)))


def _still(run: Run) -> Observed:
    """Executed and moved nothing, save at the start of a warm-up from a learning rate of zero."""
    still = run.values("executed") & run.recorded("moved") & ~run.values("moved")
    moving = np.flatnonzero(run.values("moved"))
    if len(moving):
        still[: moving[0]] &= run.values("lr")[: moving[0]] != 0
    return Observed("moved", "update", "not_moved", still, np.zeros(len(run)))


def _cut_off(run: Run) -> Observed:
    """Parameters that had gradients and have none any more."""
    column = "grad_none_params"
    return Observed(column, "backward", "jump", lost_gradients(run), run.values(column).astype(np.float64))


def _rate(run: Run) -> Observed:
    """A learning rate far over any before."""
    return Observed("lr", "update", "jump", steep_rates(run, rates(run)), run.values("lr"))


def _broken(run: Run, signal: Signal) -> Observed:
    values, mask = (
        run.values(signal.column),
        lost_loss(run) if signal.column == "loss" else nonfinite(run, signal.column),
    )
    return Observed(signal.column, signal.phase, "nonfinite", mask, values)


def _light(run: Run, weight: Traced, since: int) -> Mask:
    """[rows] from one on: under HALF of the baseline of their weight."""
    with np.errstate(invalid="ignore"):
        return run.values(weight.signal.column)[since:] < HALF * weight.baseline().center[since:]
