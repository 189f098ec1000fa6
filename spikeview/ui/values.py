"""What the window writes in a cell, and in which colour: the report's own judgement, with the shapes of the marks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from spikeview.analysis.incident import Observation
from spikeview.cells import Kind
from spikeview.format import DIGITS, label, mads, number, words
from spikeview.report.transition import measured
from spikeview.rules.diagnosis import Diagnosed, View
from spikeview.rules.wording import band
from spikeview.run import Run
from spikeview.ui.near import block_of

NARROW = 3
ROLES = {"nonfinite": "bad", "far": "bad", "outside": "warn"}
SHAPES = {Kind.NAN: " ◆", Kind.POS_INF: " ▲", Kind.NEG_INF: " ▲"}


@dataclass(frozen=True)
class Cell:
    """Text and the role of its colour; of a baseline its centre and its band in words, and how many MADs away it is."""

    text: str
    role: str = "text"
    center: str = ""
    band: str = ""
    deviation: float | None = None

    @property
    def away(self) -> str:
        """`+9.8 MADs`, empty without a baseline."""
        return "" if self.deviation is None else f"{mads(self.deviation)} MADs"


def cell(view: View, column: str, position: int, narrow: bool = False) -> Cell:
    """One cell of one of the five kinds, judged by its baseline, on the side that is bad for its signal.

    A narrow one is for columns of numbers: fewer digits, and a sign instead of words where there is no value.
    """
    block = block_of(view, position)
    key = (column, position, narrow)
    if key not in block.made:
        block.made[key] = _cell(block.view, column, position - block.first, narrow)
    made: Cell = block.made[key]
    return made


def _cell(view: View, column: str, position: int, narrow: bool) -> Cell:
    found = measured(view, column, position, NARROW if narrow else DIGITS)
    kind = Kind(int(view.run.kind(column)[position]))
    absent = kind in (Kind.NOT_APPLICABLE, Kind.NOT_RECORDED)
    text = words(view.run, column, position) if absent and not narrow else str(found["text"])
    return Cell(
        text + SHAPES.get(kind, ""),
        "muted" if absent else ROLES.get(found["level"], "text"),
        found["center"] or "",
        "" if found["center"] is None else band(column, view.baselines[column], position),
        found["mads"],
    )


def told(observation: Observation) -> tuple[str, str]:
    """What was observed and how, in two short parts: `pre-clip norm` `Inf`, `cosine` `-5.8 MADs`, `step skipped`."""
    if observation.reason in _SAID:
        return _SAID[observation.reason], ""
    if observation.reason == "drift":
        return label(observation.signal), "rises slowly"
    if observation.deviation is not None:
        return label(observation.signal), f"{mads(observation.deviation)} MADs"
    if observation.reason == "nonfinite" and math.isfinite(observation.value):
        return "gradients", "non-finite"
    return label(observation.signal), number(observation.value)


_SAID = {"skipped": "step skipped", "not_moved": "nothing moved"}


def severity_role(diagnosed: Diagnosed) -> str:
    """Red for critical, amber for a warning."""
    return "bad" if diagnosed.incident.severity == "critical" else "warn"


def step_label(run: Run, position: int) -> str:
    """`8,219`, with the place within the step where it is not the first; the row where no step was recorded."""
    step, row = whole_number(run, "step", position), whole_number(run, "row", position)
    number = next((each for each in (step, row) if each is not None), position)
    micro = whole_number(run, "micro_step", position)
    return f"{number:,}.{micro}" if micro else f"{number:,}"


def whole_number(run: Run, name: str, position: int) -> int | None:
    """One whole number of a column, None where there is none."""
    value = run.table.slice(position, 1)[name][0].as_py() if name in run else None
    return None if value is None else int(value)
