"""What the numbers of a foreign log mean, and which steps a row of it stands for.

A recorder writes one row for every transition. Other logs write a line now and then: some of its numbers belong to the
last step, others are a mean over all steps since the line before, some were read after the update they stand beside.
Importers say so here, in the manifest of the run, and the diagnosis asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spikeview.run import Run

LOG = "log"

STEP, MICRO_STEP, MEAN = "step", "micro_step", "mean"
BEFORE, AFTER = "before", "after"
ONE_RANK, ALL_RANKS = "one", "all"
KEPT, HIDDEN = "kept", "hidden"


@dataclass(frozen=True)
class Meaning:
    """What one column of a log holds; an empty text where the log does not tell.

    `name` is what the log calls it. `over`: the last `step`, the last `micro_step` of it, or the `mean` of all steps
    since the row before. `update`: read `before` or `after` the update of its step. `ranks`: of `one` or of `all`.
    `clipping`: a norm from `before` or `after` it. `nonfinite`: NaN and infinities are `kept`, or `hidden` behind
    another value.
    """

    name: str
    over: str = ""
    update: str = ""
    ranks: str = ""
    clipping: str = ""
    nonfinite: str = ""

    def __str__(self) -> str:
        told = [
            {STEP: "of the last step", MICRO_STEP: "of the last micro-step", MEAN: "mean since the row before"}.get(
                self.over
            ),
            {AFTER: "read after the update"}.get(self.update),
            {ONE_RANK: "of one rank", ALL_RANKS: "of all ranks"}.get(self.ranks),
            {BEFORE: "before clipping", AFTER: "after clipping"}.get(self.clipping),
            {HIDDEN: "NaN and Inf left out"}.get(self.nonfinite),
        ]
        return ", ".join(text for text in told if text)


def described(log: str, file: str, meanings: Mapping[str, Meaning], notes: Sequence[str]) -> dict[str, Any]:
    """What a manifest says of a log: its format, the name of the file, what each column holds, what was noted."""
    columns = {name: asdict(each) for name, each in meanings.items()}
    return {LOG: {"format": log, "file": file, "columns": columns, "notes": list(notes)}}


def noted(run: Run) -> tuple[str, ...]:
    """What was noted when a log was read, in a run directory that was made of one."""
    log = run.manifest.get(LOG)
    notes = log.get("notes") if isinstance(log, Mapping) else None
    return tuple(str(note) for note in notes) if isinstance(notes, list) else ()


def is_log(run: Run) -> bool:
    """Whether the rows come from a log that may have left steps out."""
    return isinstance(run.manifest.get(LOG), Mapping)


def meaning(run: Run, column: str) -> Meaning | None:
    """What a column of a log holds; None for the recorder's own runs and for what no importer described."""
    log = run.manifest.get(LOG)
    columns = log.get("columns") if isinstance(log, Mapping) else None
    said = columns.get(column) if isinstance(columns, Mapping) else None
    if not isinstance(said, Mapping):
        return None
    return Meaning(**{field.name: str(said.get(field.name, "")) for field in fields(Meaning)})


def onset(run: Run, column: str, position: int) -> tuple[int, int] | None:
    """The first and the last step at which that began which a row of a log shows; None where that is one step.

    It lies after the last row before that holds the column. At the start of a segment the usual distance of rows stands
    in for it.
    """
    if not is_log(run) or not run.recorded("step")[position]:
        return None
    steps, last = run.values("step"), int(run.values("step")[position])
    before = _row_before(run, column, position)
    first = last - usual_stride(run) if before is None else int(steps[before])
    return (first + 1, last) if first + 1 < last else None


def mean_of(run: Run, column: str, position: int) -> int | None:
    """Over how many steps a cell is the mean; None where it is of one step, or where nobody said."""
    said = meaning(run, column)
    if said is None or said.over != MEAN:
        return None
    steps = onset(run, column, position)
    return None if steps is None else steps[1] - steps[0] + 1


def hides_nonfinite(run: Run, column: str, position: int) -> bool:
    """Whether a cell is a log's mean over several steps that leaves out what is not finite."""
    said = meaning(run, column)
    return said is not None and said.nonfinite == HIDDEN and mean_of(run, column, position) is not None


def usual_stride(run: Run) -> int:
    """By how many steps rows usually lie apart; 1 where nothing tells."""
    return stride(run.values("step")[run.recorded("step")]) or 1


def stride(steps: Sequence[int] | NDArray[np.int64]) -> int | None:
    """By how much steps usually rise from one row to the next; None where they never do."""
    apart = np.diff(np.asarray(steps, dtype=np.int64))
    apart = apart[apart > 0]
    return int(np.median(apart)) if len(apart) else None


def _row_before(run: Run, column: str, position: int) -> int | None:
    """The last row before a position, in its segment, that holds the column and a step."""
    told, stepped = run.recorded(column), run.recorded("step")
    segments = run.values("segment")
    while position > 0 and segments[position - 1] == segments[position]:
        position -= 1
        if told[position] and stepped[position]:
            return position
    return None
