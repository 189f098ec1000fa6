"""What a rule of the triage table is given: one incident, the rows it lies in, and what they are judged by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from recorder.schema import Mask
from spikeview.analysis.incident import Incident
from spikeview.analysis.lazy import LazyMask
from spikeview.analysis.signals import SIGNALS
from spikeview.cells import Kind
from spikeview.format import label, number, plural
from spikeview.rules.finding import Verdict
from spikeview.rules.watch import Positions, Watch
from spikeview.rules.wording import reading, row_of, written
from spikeview.run import Run

RESUMED_WITHIN = 50

_RELATIVE_TO = {signal.column: signal.relative_to for signal in SIGNALS}


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
class Jump:
    """A jump of the learning rate at or before a transition, `ago` rows before it."""

    position: int
    ago: int
    text: str


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

    @cached_property
    def extent(self) -> Positions:
        """Every row of the incident."""
        return np.arange(self.first, self.incident.last + 1)

    @cached_property
    def transitions(self) -> Positions:
        """The transition before the incident and those of its rows that executed."""
        rows: Positions = self.extent if self.before is None else np.append(self.before, self.extent)
        executed: Mask = self.run.values("executed")[rows]
        return rows[executed]

    @cached_property
    def perhaps(self) -> Positions:
        """The rows that `transitions` would hold too, had it been recorded that they executed."""
        known = self.watch.perhaps
        within = known[np.searchsorted(known, self.first) : np.searchsorted(known, self.incident.last, side="right")]
        return np.append(self.watch.perhaps_before(self.first), within)

    def out(self, signal: str) -> LazyMask:
        """[rows]: where a signal left its baseline or the finite numbers."""
        return self.watch.out[signal]

    def doubt(self, columns: tuple[str, ...], position: int) -> Judgement | None:
        """Why signals that are not out at a row cannot be called ordinary either; None where they can."""
        doubtful = tuple(column for column in columns if self.watch.doubtful[column][position])
        if "grad_norm" in doubtful and self.watch.at_step[position] and not self.watch.scaled[position]:
            seen = f"at {self.row(position)}: its norm was seen at the step, perhaps after clipping"
            return cannot_tell(("grad_norm",), seen)
        missing = dict.fromkeys(name for column in doubtful if (name := self._missing(column, position)))
        if missing:
            return cannot_tell(tuple(missing), f"at {self.row(position)}")
        return Judgement(Verdict.CANNOT_TELL, self._why_doubtful(doubtful[0], position)) if doubtful else None

    def _missing(self, column: str, position: int) -> str | None:
        """The column itself, or the one it is relative to, where it was not recorded at a row."""
        if self.missing(column, position):
            return column
        other = _RELATIVE_TO[column]
        lacks = other is not None and other in self.run and not self.run.recorded(other)[position]
        return other if lacks and self._without_center(column, position) else None

    def _why_doubtful(self, column: str, position: int) -> str:
        row = self.row(position)
        if column == "grad_norm" and self.watch.scaled[position]:
            return f"the norm of {row} may still be multiplied by the loss scale"
        if not self._without_center(column, position) and np.isfinite(self.watch.baselines[column].deviation[position]):
            return f"{self.says(column, position)} at {row}: too far out to be ordinary, too little to be sure"
        if not self._without_center(column, position):
            other = _RELATIVE_TO[column]
            beside = f" at {written(self.run, other, position)}" if other and other in self.run else ""
            return f"{written(self.run, column, position)}{beside} has no place on its baseline's scale, at {row}"
        return f"too few rows before {row} for a baseline of the {label(column)}"

    def _without_center(self, column: str, position: int) -> bool:
        base = self.watch.baselines.get(column)
        return base is None or bool(np.isnan(base.center[position]))

    def missing(self, column: str, position: int) -> bool:
        return bool(self.run.kind(column)[position] == Kind.NOT_RECORDED)

    def says(self, column: str, position: int) -> str:
        """A value beside its baseline, in words."""
        return reading(self.run, self.watch.baselines, column, position)

    def row(self, position: int) -> str:
        return f"row {row_of(self.run, position)}"

    def lr_jump(self, transition: int | None) -> Jump | None:
        """The last jump of the learning rate among the steps up to a transition, itself included."""
        found = None if transition is None else self.watch.rates.jump(transition)
        if transition is None or found is None:
            return None
        place, old, new = found
        text = f"{label('lr')} {number(old)} to {number(new)} (x{number(new / old)}) at {self.row(place)}"
        ago = row_of(self.run, transition) - row_of(self.run, place)
        return Jump(place, ago, f"{text}, {plural(ago, 'row')} before {self.row(transition)}" if ago else text)

    def lr_rise(self, transition: int) -> str | None:
        """That the learning rate has been rising up to a transition, in words."""
        if (found := self.watch.rates.rise(transition)) is None:
            return None
        place, old, new = found
        text = f"{label('lr')} {number(old)} to {number(new)} (x{number(new / old)})"
        return f"{text} from {self.row(place)} to {self.row(transition)}, and rising"

    def moved_outside(self) -> tuple[str, Positions] | None:
        """That the parameters changed from the last step before the incident to the next by more than it moved them.

        | |theta_next| - |theta| | is at most |theta_next - theta|; a sampled norm may be off by a few percent.
        """
        run, rows = self.run, self.extent
        following = rows[run.values("executed")[rows].astype(np.bool_)]
        if self.before is None or not len(following) or "param_norm" not in run:
            return None
        both = np.array([self.before, following[0]])
        norm, update = run.values("param_norm")[both], float(run.values("update_norm")[self.before])
        apart = abs(float(norm[1] - norm[0])) - update
        exact = all(run.text("update_kind", int(place)) == "exact" for place in both)
        resumed = "segment" in run and len(np.unique(run.values("segment")[both])) > 1
        if resumed or not apart > (0.001 if exact else 0.1) * float(norm.max()):
            return None
        text = (
            f"{label('param_norm')} {number(norm[0])} at {self.row(int(both[0]))} and {number(norm[1])} at "
            f"{self.row(int(both[1]))}, though the step between moved them by {number(update)}: "
            "they were changed outside of it, or others joined them"
        )
        return text, both

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
        told = events[-1] if events else {}
        for what, parts in (("not as it was", told.get("lost")), ("as it was", told.get("came_back"))):
            if parts and isinstance(parts, (Mapping, list)):
                return f"; {what} at the checkpoint: {', '.join(map(str, parts))}"
        restored = told.get("restored")
        return f"; restored: {', '.join(map(str, restored)) or 'nothing'}" if isinstance(restored, list) else ""
