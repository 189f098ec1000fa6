"""Where a run went back to an earlier step or a checkpoint. Both branches are kept; the one it left is abandoned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recorder.store.clock import Mask, Numbers, falls, filled, row_numbers
from recorder.store.lazy_table import Table

Events = Sequence[Mapping[str, Any]]
Stretch = tuple[int, int]

NAMED = 8
LONGEST_NAME = 80
# Steps that fall more often than both are no clock of the loop's: numbers of samples, for instance.
FALLS = 16
SHARE_OF_FALLS = 0.05


@dataclass(frozen=True)
class Checkpoint:
    """The loop saved its state under this name, after this row."""

    name: str
    row: int


@dataclass(frozen=True)
class Rewind:
    """The run went back to `step` at row `at`, and to a `checkpoint` where it said so.

    `rows` are first and last number of each stretch that it abandoned, `steps` the smallest and largest step in them.
    """

    at: int
    step: int
    rows: tuple[Stretch, ...]
    steps: Stretch
    checkpoint: str | None = None


def find_rewinds(table: Table, events: Events) -> tuple[Rewind, ...]:
    """Every time that the rows of a run went back, in order.

    A segment that begins at a step abandons the rows before it from that step on. So does a step that falls within a
    segment, unless it falls back to the first one: then it counts anew, as some loops do in every epoch, and what is
    abandoned later reaches no further back. Where a resume names a checkpoint of this run, the rows after that one are
    abandoned, whatever their steps.
    """
    if "step" not in table.column_names or not table.num_rows:
        return ()
    fallen, begins = falls(table)
    resumes = _resumes(events)
    if not len(fallen) and not resumes:
        return ()
    steps, rows = filled(table["step"]), row_numbers(table)
    segments = filled(table["segment"]) if "segment" in table.column_names else np.zeros_like(steps)
    said = _places(resumes, rows, segments)
    backwards = {*fallen[begins].tolist(), *said}
    if np.count_nonzero(~begins) <= max(FALLS, SHARE_OF_FALLS * len(steps)):
        backwards.update(fallen[steps[fallen] > steps[0]].tolist())
    live: list[Stretch] = []
    found: list[Rewind] = []
    begin = 0
    for place in sorted({*fallen.tolist(), *said}):
        live.append((begin, place))
        begin, checkpoint = place, said.get(place)
        if place not in backwards:
            live.clear()
            continue
        left = _leave(live, steps, int(steps[place])) if checkpoint is None else _leave(live, rows, checkpoint.row + 1)
        if left:
            found.append(_rewind(place, left, steps, rows, checkpoint))
    return tuple(found)


def may_go_back(table: Table, unchanged: int, events: Events) -> bool:
    """Whether rows after the first `unchanged` ones, for which the rewinds are known, can have gone back."""
    if not unchanged or "step" not in table.column_names:
        return True
    tail = table.slice(unchanged - 1)
    last = int(row_numbers(tail)[0])
    for event in reversed(events):
        row = event.get("row")
        if isinstance(row, int) and row < last:
            break
        if event.get("kind") == "resume":
            return True
    return len(falls(tail)[0]) > 0


def abandoned(rewinds: Sequence[Rewind], rows: Numbers) -> Mask:
    """[rows]: which of these row numbers were abandoned."""
    stretches = np.array(sorted(stretch for rewind in rewinds for stretch in rewind.rows), np.int64).reshape(-1, 2)
    if not len(stretches):
        return np.zeros(len(rows), dtype=np.bool_)
    before = np.searchsorted(stretches[:, 0], rows, side="right") - 1
    within: Mask = (before >= 0) & (rows <= stretches[before, 1])
    return within


def told(rewinds: Sequence[Rewind]) -> list[str]:
    """What was abandoned, in a line for each time."""
    lines = [_line(rewind) for rewind in rewinds[:NAMED]]
    return lines if len(rewinds) <= NAMED else [*lines, f"the run went back {len(rewinds) - NAMED:,} more times"]


def _resumes(events: Events) -> dict[int, Checkpoint | None]:
    """After which row the loop said that it resumes, and the checkpoint where this run told of it too."""
    checkpoints: dict[str, Checkpoint] = {}
    found: dict[int, Checkpoint | None] = {}
    for event in events:
        row = event.get("row")
        if not isinstance(row, int):
            continue
        if event.get("kind") == "checkpoint":
            name = str(event.get("name"))
            checkpoints[name] = Checkpoint(name, row)
        elif event.get("kind") == "resume":
            found[row] = checkpoints.get(str(event.get("from_checkpoint")))
    return found


def _places(resumes: Mapping[int, Checkpoint | None], rows: Numbers, segments: Numbers) -> dict[int, Checkpoint | None]:
    """The first position after each resume. One that is told on the first row of a segment is told of that row."""
    if (np.diff(rows) < 0).any():
        return {}
    found = {}
    for row, checkpoint in resumes.items():
        place = int(np.searchsorted(rows, row))
        if not 0 < place < len(rows) or segments[place] == segments[place - 1]:
            place = int(np.searchsorted(rows, row, side="right"))
        if 0 < place < len(rows):
            found[place] = checkpoint
    return found


def _leave(live: list[Stretch], numbers: Numbers, first: int) -> list[Stretch]:
    """Take from the end of the live stretches what is numbered from `first` on. In each the numbers do not fall."""
    left: list[Stretch] = []
    while live:
        begin, end = live.pop()
        cut = begin + int(np.searchsorted(numbers[begin:end], first))
        if cut < end:
            left.append((cut, end))
        if begin < cut:
            live.append((begin, cut))
            break
    return left[::-1]


def _rewind(at: int, left: Sequence[Stretch], steps: Numbers, rows: Numbers, checkpoint: Checkpoint | None) -> Rewind:
    stretches: list[Stretch] = []
    for begin, end in left:
        first, last = int(rows[begin]), int(rows[end - 1])
        if stretches and stretches[-1][1] + 1 >= first:
            first = stretches.pop()[0]
        stretches.append((first, last))
    within = (min(int(steps[begin]) for begin, _ in left), max(int(steps[end - 1]) for _, end in left))
    name = None if checkpoint is None else checkpoint.name
    return Rewind(int(rows[at]), int(steps[at]), tuple(stretches), within, name)


def _line(rewind: Rewind) -> str:
    stretches = [str(first) if first == last else f"{first} to {last}" for first, last in rewind.rows]
    one = len(rewind.rows) == 1 and rewind.rows[0][0] == rewind.rows[0][1]
    first, last = rewind.steps
    steps = f"step {first}" if first == last else f"steps {first} to {last}"
    where = f"step {rewind.step}"
    if rewind.checkpoint is not None:
        where = f"checkpoint {rewind.checkpoint[:LONGEST_NAME]}, at step {rewind.step}"
    rows = f"row{'' if one else 's'} {' and '.join(stretches)} ({steps}) {'was' if one else 'were'}"
    return f"{rows} abandoned: the run went back to {where}"
