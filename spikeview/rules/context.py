"""What a rule of the triage table is given: one incident, the rows it lies in, and what they are judged by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.baseline import TREND, Baseline
from spikeview.analysis.clocks import skipped
from spikeview.analysis.incident import Incident
from spikeview.analysis.observations import Observed, nonfinite_gradient
from spikeview.analysis.signals import SIGNALS
from spikeview.format import label, number
from spikeview.rules.finding import Verdict
from spikeview.rules.wording import reading, row_of
from spikeview.run import Kind, Run

RESUMED_WITHIN = 50
LR_JUMP = 2.5

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Judgement:
    """A rule's answer before it is put into the table: `positions` index the rows it rests on."""

    verdict: Verdict
    evidence: str
    positions: Positions = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    missing: tuple[str, ...] = ()


def cannot_tell(missing: tuple[str, ...], where: str) -> Judgement:
    """The verdict where columns were not recorded on the rows that matter."""
    names = " and ".join(label(column) for column in missing)
    return Judgement(Verdict.CANNOT_TELL, f"{names} not recorded {where}", missing=missing)


@dataclass(frozen=True)
class Watch:
    """What is found once for all incidents of an optimizer: masks are [rows], `executed` positions in order.

    `out` says where a signal left its baseline or the finite numbers, `broken` where a gradient is not finite.
    """

    run: Run
    baselines: Mapping[str, Baseline]
    out: Mapping[str, Mask]
    broken: Mask
    skips: Mask
    executed: Positions

    def last_executed_before(self, position: int) -> int | None:
        count = int(np.searchsorted(self.executed, position))
        return int(self.executed[count - 1]) if count else None


def watch(run: Run, baselines: Mapping[str, Baseline], observed: Sequence[Observed]) -> Watch:
    """What the rules need to know of all rows."""
    out = {signal.column: np.zeros(len(run), dtype=np.bool_) for signal in SIGNALS}
    for each in observed:
        if each.signal in out:
            out[each.signal] = out[each.signal] | each.mask
    executed = np.flatnonzero(run.values("executed"))
    return Watch(run, baselines, out, nonfinite_gradient(run), skipped(run), executed)


@dataclass(frozen=True)
class Context:
    """One incident of one optimizer. `before` is the last transition that executed before the first bad row.

    `accused` is `before` where the loss or the gradient was first, the first bad row itself where the update was.
    """

    watch: Watch
    incident: Incident
    before: int | None
    accused: int | None

    @property
    def run(self) -> Run:
        return self.watch.run

    @property
    def first(self) -> int:
        return self.incident.first_bad.position

    @property
    def extent(self) -> Positions:
        """Every row of the incident."""
        return np.arange(self.first, self.incident.last + 1)

    @property
    def transitions(self) -> Positions:
        """The transition before the incident and those of its rows that executed."""
        rows: Positions = self.extent if self.before is None else np.append(self.before, self.extent)
        executed: Mask = self.run.values("executed")[rows]
        return rows[executed]

    def out(self, signal: str) -> Mask:
        """[rows]: where a signal left its baseline or the finite numbers."""
        return self.watch.out[signal]

    def missing(self, column: str, position: int) -> bool:
        return bool(self.run.kind(column)[position] == Kind.NOT_RECORDED)

    def unjudged(self, column: str, position: int) -> bool:
        """A finite value with too few healthy rows before it."""
        base = self.watch.baselines.get(column)
        return bool(
            self.run.kind(column)[position] == Kind.FINITE and (base is None or np.isnan(base.center[position]))
        )

    def says(self, column: str, position: int) -> str:
        """A value beside its baseline, in words."""
        return reading(self.run, self.watch.baselines, column, position)

    def row(self, position: int) -> str:
        return f"row {row_of(self.run, position)}"

    def lr_jump(self) -> tuple[int, str] | None:
        """The last row, among the recent ones up to the accused, where the learning rate rose by LR_JUMP or more."""
        if self.accused is None:
            return None
        until = int(np.searchsorted(self.watch.executed, self.accused, side="right"))
        recent = self.watch.executed[max(0, until - 2 * TREND) : until]
        recent = recent[self.run.recorded("lr")[recent]]
        rates = self.run.values("lr")[recent]
        for i in range(len(recent) - 1, max(0, len(recent) - 1 - TREND), -1):
            usual = rates[max(0, i - TREND) : i].max()
            if 0 < LR_JUMP * usual <= rates[i]:
                change = (
                    f"learning rate {number(rates[i - 1])} to {number(rates[i])} (x{number(rates[i] / rates[i - 1])})"
                )
                return int(recent[i]), f"{change} at {self.row(int(recent[i]))}"
        return None

    def resume(self) -> str | None:
        """A resume shortly before the first bad row, in words."""
        if "segment" not in self.run:
            return None
        segments = self.run.values("segment")[: self.first + 1]
        start = int(np.searchsorted(segments, segments[-1]))
        if start == 0 or self.first - start > RESUMED_WITHIN:
            return None
        ago = self.first - start
        when = "at this row" if ago == 0 else f"{ago} {'row' if ago == 1 else 'rows'} before"
        return f"resumed {when} ({self.row(start)}{self._restored(start)})"

    def _restored(self, start: int) -> str:
        row = row_of(self.run, start)
        events = [
            event for event in self.run.events if event.get("kind") == "resume" and event.get("row") in (row - 1, row)
        ]
        restored = events[-1].get("restored") if events else None
        return f"; restored: {', '.join(map(str, restored)) or 'nothing'}" if isinstance(restored, list) else ""
