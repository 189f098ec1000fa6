"""What the rows after a resume show of what did not come back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spikeview.cells import Kind
from spikeview.format import label, number, scalar, shown
from spikeview.rules.wording import row_of, written
from spikeview.run import Run

OCTAVES = 2
RATE = 1.2
ALIKE = 0.01
BEFORE = 64
LEAST = 16
STRAIGHT = 0.999
AS_FIRST = 0.05
REPLAYED = 3


@dataclass(frozen=True)
class Resume:
    """A segment after the first: `start` is its first position, `same` the earlier one of the same step, if any."""

    run: Run
    start: int
    same: int | None

    @property
    def before(self) -> int:
        """The position that this one continues from: the row before the same step, else the last row there was."""
        return self.start - 1 if self.same is None else max(self.same - 1, 0)

    def restored(self) -> list[str] | None:
        """What the loop said came back; None where it did not say."""
        return _texts(self._event().get("restored"))

    def came_back(self) -> list[str]:
        """What the recorder measured to be as it was at the checkpoint."""
        return _texts(self._event().get("came_back")) or []

    def lost(self) -> dict[str, str]:
        """What the recorder measured to be another than at the checkpoint, and in what."""
        lost = self._event().get("lost")
        return {str(part): str(what) for part, what in lost.items()} if isinstance(lost, Mapping) else {}

    def _event(self) -> Mapping[str, Any]:
        row = row_of(self.run, self.start)
        told = [e for e in self.run.events if e.get("kind") == "resume" and e.get("row") in (row - 1, row)]
        return told[-1] if told else {}


def _texts(values: Any) -> list[str] | None:
    return [str(each) for each in values] if isinstance(values, (list, tuple)) else None


def same_step(run: Run, start: int) -> int | None:
    """The last earlier position with the step, and the place within it, that a segment starts with."""
    if not run.recorded("step")[start]:
        return None
    same = run.recorded("step")[:start].copy()
    for clock in ("step", "micro_step"):
        if run.recorded(clock)[start]:
            same &= run.values(clock)[:start] == run.values(clock)[start]
    found = np.flatnonzero(same)
    return int(found[-1]) if len(found) else None


def traces(resume: Resume) -> Iterator[str]:
    """A scale, a rate or batches that start over, and an optimizer without its history; in words."""
    for judge in (_scale_lost, _rate_lost, _history_lost, _batches_again):
        if found := judge(resume):
            yield found


def _scale_lost(resume: Resume) -> str | None:
    run, start, before = resume.run, resume.start, resume.before
    if not run.recorded("loss_scale")[[start, before]].all():
        return None
    now, then = (float(run.values("loss_scale")[place]) for place in (start, before))
    first = float(run.values("loss_scale")[np.argmax(run.recorded("loss_scale"))])
    if now != first or abs(np.log2(now / then)) < OCTAVES:
        return None
    return f"{label('loss_scale')} starts over at {scalar('loss_scale', now)}, after {scalar('loss_scale', then)}"


def _rate_lost(resume: Resume) -> str | None:
    """The rate of an earlier row of the same step is another one, or the rates are those of the run's first rows."""
    run, start = resume.run, resume.start
    rates, told = run.values("lr"), run.recorded("lr")
    if resume.same is not None and told[[start, resume.same]].all():
        if _apart(rates[start], rates[resume.same]):
            then = f"{number(float(rates[resume.same]))} at row {row_of(run, resume.same)}, of the same step"
            return f"{label('lr')} {number(float(rates[start]))}, where it was {then}"
        return None
    for place in range(2):  # a scheduler that starts over may only show with its first step
        now = start + place
        if now >= len(run) or not told[[place, now, resume.before]].all():
            continue
        as_first = abs(rates[now] - rates[place]) <= ALIKE * rates[place]
        if as_first and _apart(rates[now], rates[resume.before]):
            then = f"{number(float(rates[resume.before]))} before the resume"
            return f"{label('lr')} starts over at {number(float(rates[now]))}, after {then}"
    return None


def _apart(one: float, other: float) -> bool:
    return max(one, other) > RATE * min(one, other)


def _history_lost(resume: Resume) -> str | None:
    """The first update is one that only an optimizer without a history makes.

    With momentum it goes straight along its gradient, which no update before did. An optimizer of Adam's kind moves
    every coordinate by its rate, as it did on the run's first row and not since.
    """
    run = resume.run
    told = (run.kind("update_cosine") == Kind.FINITE) & (run.kind("update_norm") == Kind.FINITE)
    told &= run.recorded("lr") & (run.values("lr") > 0)
    rows = np.flatnonzero(told)
    now, end = int(np.searchsorted(rows, resume.start)), int(np.searchsorted(rows, resume.before, side="right"))
    begin = end - min(BEFORE, end // 2)
    if now == len(rows) or end - begin < LEAST:
        return None
    cosine, size = run.values("update_cosine")[rows], run.values("update_norm")[rows] / run.values("lr")[rows]
    straight = cosine[now] > STRAIGHT > cosine[begin:end].max()
    whole = abs(size[now] / size[0] - 1) < AS_FIRST and size[now] > (1 + AS_FIRST) * size[begin:end].max()
    if not (straight or whole):
        return None
    text = f"the optimizer has no history: {written(run, 'update_cosine', int(rows[now]))}, and {label('update_norm')}"
    times = number(float(size[now] / np.median(size[begin:end])))
    return f"{text} by {label('lr')} {times} times that of the rows before"


def _batches_again(resume: Resume) -> str | None:
    """The batches are those of the run's first rows again, in the midst of the first pass over them."""
    run, start = resume.run, resume.start
    if len(run) < start + REPLAYED or resume.same == 0 or resume.before < REPLAYED:
        return None
    begun = [run.text("batch_id", place) for place in range(REPLAYED)]
    if None in begun or begun != [run.text("batch_id", start + place) for place in range(REPLAYED)]:
        return None
    came = np.flatnonzero(run.equals("batch_id", str(begun[0]))[: resume.before + 1])
    return f"batches start over with {shown(str(begun[0]))}, the run's first" if len(came) == 1 else None
