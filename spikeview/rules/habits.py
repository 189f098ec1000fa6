"""What a signal does so often that a further time is no news: told, since it is not ordinary either."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spikeview.format import label, plain, plural
from spikeview.rules.diagnosis import Diagnosis, View
from spikeview.rules.wording import reading, row_of


@dataclass(frozen=True)
class Habit:
    """A signal of one optimizer that was too far out on so many `rows`, though no farther than it often is.

    `farthest` is the position of the row farthest out of them.
    """

    view: View
    signal: str
    rows: int
    farthest: int

    @property
    def text(self) -> str:
        """`loss far out on 36 rows that begin no incident, as it often is: farthest at row 1918, loss 0.6805 (...)`."""
        run = self.view.run
        worst = f"row {row_of(run, self.farthest)}, {reading(run, self.view.baselines, self.signal, self.farthest)}"
        rows = f"{plural(self.rows, 'row')} that {'begins' if self.rows == 1 else 'begin'} no incident"
        return f"{label(self.signal)} far out on {rows}, as it often is: farthest at {worst}"

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        run, place = self.view.run, self.farthest
        deviation = float(self.view.baselines[self.signal].deviation[place])
        worst = {
            "row": row_of(run, place),
            "value": plain(float(run.values(self.signal)[place])),
            "deviation": plain(deviation),
        }
        return {"signal": self.signal, "optimizer": self.view.optimizer, "rows": self.rows, "farthest": worst}


def habits(diagnosis: Diagnosis) -> tuple[Habit, ...]:
    """Of every optimizer and signal that has any, in the order of the signals."""
    return tuple(
        Habit(view, signal, len(rows), int(rows[np.argmax(np.abs(baseline.deviation[rows]))]))
        for view in diagnosis.views
        for signal, baseline in view.baselines.items()
        if len(rows := np.flatnonzero(baseline.habitual))
    )
