"""A check's answer before it is put into the list."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.format import label
from spikeview.rules.finding import Outcome
from spikeview.rules.wording import name_rows
from spikeview.run import Run


@dataclass(frozen=True)
class Answer:
    """`positions` index the rows it rests on, `missing` names the columns that would have told."""

    outcome: Outcome
    evidence: str
    positions: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    missing: tuple[str, ...] = ()


def unknown(*columns: str) -> Answer:
    """The answer where these columns were not recorded."""
    return untold(f"{' and '.join(label(column) for column in columns)} not recorded", *columns)


def untold(evidence: str, *columns: str) -> Answer:
    """The answer where what was recorded does not tell; `columns` would."""
    return Answer(Outcome.CANNOT_TELL, evidence, missing=columns)


def too_few(count: int, what: str, least: int) -> Answer:
    """The answer where there is less than it takes to judge."""
    return untold(f"{count:,} {what} of the {least:,} it takes")


def passed(run: Run, evidence: str, column: str, silent: Mask) -> Answer:
    """Passed, unless a column was not recorded on rows where it could have said otherwise."""
    rows = np.flatnonzero(silent)
    if not len(rows):
        return Answer(Outcome.PASSED, evidence)
    text = f"{evidence}, but {label(column)} not recorded at {name_rows(run, rows)}"
    return Answer(Outcome.CANNOT_TELL, text, rows, (column,))
