"""Several runs side by side: what spikes in more than one points at the data, what spikes in one alone at its state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spikeview.rules.diagnosis import Diagnosis, View
from spikeview.rules.wording import row_of
from spikeview.run import Run

CHANCE = 0.05


@dataclass(frozen=True)
class Spike:
    """The onset of one incident, or of a stray by habit: its row, and its step and batch where they were recorded."""

    run: str
    row: int
    step: int | None
    batch: str | None
    signal: str

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {"run": self.run, "row": self.row, "step": self.step, "batch_id": self.batch, "signal": self.signal}


@dataclass(frozen=True)
class Spikes:
    """The onsets of one run's incidents, and the steps that it has rows of, in order, each once.

    `habits` are where a signal was out, and no farther than it often is: by itself that is no incident.
    """

    run: str
    onsets: tuple[Spike, ...]
    steps: NDArray[np.int64]
    habits: tuple[Spike, ...] = ()


@dataclass(frozen=True)
class Shared:
    """Onsets in several runs on the same batch, or on the same step.

    `by` is `batch`, `step` where batches were not recorded, or `step_only` where the batches of the step differ.
    """

    by: str
    onsets: tuple[Spike, ...]

    @property
    def look(self) -> str:
        """Where it points."""
        return LOOK[self.by]


@dataclass(frozen=True)
class Alone:
    """An onset in one run, on a step that others passed without one (`ordinary`), or never reached."""

    onset: Spike
    ordinary: tuple[str, ...]


@dataclass(frozen=True)
class Between:
    """What several runs have in common, and what only one of them has."""

    shared: tuple[Shared, ...]
    alone: tuple[Alone, ...]


BATCH, STEP, STEP_ONLY = "batch", "step", "step_only"
LOOK = {
    BATCH: "the same batch in each: suspect the data",
    STEP: "the same step in each, batches not recorded: suspect the data, if they were read in the same order",
    STEP_ONLY: "the same step in each with other batches: suspect the schedule, not the data",
}


def spikes(diagnosis: Diagnosis, name: str) -> Spikes:
    """What `between` needs of one run, under a name that no other has."""
    run = diagnosis.run
    steps = np.unique(run.values("step")[run.recorded("step")]) if "step" in run else np.zeros(0, dtype=np.int64)
    firsts = [(each.view.run, each.incident.first_bad) for each in diagnosis.incidents]
    onsets = tuple(_spike(name, rows, first.position, first.signal) for rows, first in firsts)
    habits = tuple(habit for view in diagnosis.views for habit in _habits(name, view, diagnosis))
    return Spikes(name, onsets, steps.astype(np.int64), habits)


def between(runs: Sequence[Spikes]) -> Between:
    """Which onsets of incidents several runs share, by batch or else by step, and which stand in one alone.

    In order of step; an onset whose batch is shared is not told again for its step. What one run does by habit is news
    where another is out on the same batch or step, unless it is so often that chance would do.
    """
    onsets = [onset for each in runs for onset in each.onsets]
    out = [*onsets, *(habit for each in runs if _is_rare(each, runs) for habit in each.habits)]
    batches = _sharing(out, lambda onset: onset.batch)
    told = {onset for group in batches for onset in group}
    steps = _sharing([onset for onset in out if onset not in told], lambda onset: onset.step)
    told |= {onset for group in steps for onset in group}
    shared = [Shared(BATCH, group) for group in batches]
    shared += [Shared(STEP if any(each.batch is None for each in group) else STEP_ONLY, group) for group in steps]
    alone = [_alone(onset, runs) for onset in onsets if onset not in told]
    return Between(
        tuple(sorted(shared, key=lambda each: each.onsets[0].step or 0)),
        tuple(sorted(alone, key=lambda each: each.onset.step or 0)),
    )


def plain(found: Between) -> dict[str, Any]:
    """As JSON can hold it: the key `between` of `triage --json`."""
    return {
        "shared": [
            {"by": each.by, "look": each.look, "onsets": [onset.plain() for onset in each.onsets]}
            for each in found.shared
        ],
        "alone": [{**each.onset.plain(), "ordinary_in": list(each.ordinary)} for each in found.alone],
    }


def _spike(name: str, run: Run, position: int, signal: str) -> Spike:
    step = int(run.values("step")[position]) if run.recorded("step")[position] else None
    return Spike(name, row_of(run, position), step, run.text("batch_id", position), signal)


def _habits(name: str, view: View, diagnosis: Diagnosis) -> Iterator[Spike]:
    """Where a signal of an optimizer begins to be out by habit, outside of incidents; each row once."""
    told = np.zeros(len(view.run), dtype=np.bool_)
    for incident in (each.incident for each in diagnosis.incidents if each.view is view):
        told[incident.first_bad.position : incident.last + 1] = True
    for column, baseline in view.baselines.items():
        rows = np.flatnonzero(baseline.habitual)
        for position in rows[np.diff(rows, prepend=-2) > 1].tolist():
            if not told[position]:
                told[position] = True
                yield _spike(name, view.run, position, column)


def _is_rare(run: Spikes, runs: Sequence[Spikes]) -> bool:
    """Whether chance would hardly put one of a run's habits on a step where another run is out."""
    others = sum(len(each.onsets) + len(each.habits) for each in runs if each is not run)
    return len(run.habits) * others < CHANCE * len(run.steps)


def _sharing(onsets: Sequence[Spike], key: Callable[[Spike], Hashable]) -> list[tuple[Spike, ...]]:
    """The onsets that share a key over at least two runs."""
    groups: dict[Hashable, list[Spike]] = defaultdict(list)
    for onset in onsets:
        if key(onset) is not None:
            groups[key(onset)].append(onset)
    return [tuple(group) for group in groups.values() if len({onset.run for onset in group}) > 1]


def _alone(onset: Spike, runs: Sequence[Spikes]) -> Alone:
    others = [each for each in runs if each.run != onset.run]
    return Alone(onset, tuple(each.run for each in others if onset.step is not None and _has(each, onset.step)))


def _has(run: Spikes, step: int) -> bool:
    place = int(np.searchsorted(run.steps, step))
    return place < len(run.steps) and int(run.steps[place]) == step
