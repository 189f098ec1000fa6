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
    """`positions` index the rows it rests on."""

    outcome: Outcome
    evidence: str
    positions: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def unknown(*columns: str) -> Answer:
    """The answer where these columns were not recorded."""
    return Answer(Outcome.CANNOT_TELL, f"{' and '.join(label(column) for column in columns)} not recorded")


def passed(run: Run, evidence: str, column: str, untold: Mask) -> Answer:
    """Passed, unless a column was not recorded on rows where it could have said otherwise."""
    rows = np.flatnonzero(untold)
    if not len(rows):
        return Answer(Outcome.PASSED, evidence)
    return Answer(Outcome.CANNOT_TELL, f"{evidence}, but {label(column)} not recorded at {name_rows(run, rows)}", rows)
