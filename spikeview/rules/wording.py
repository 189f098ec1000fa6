"""How evidence is put into words: a value beside its baseline, lists of rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from spikeview.analysis.baseline import Baseline
from spikeview.analysis.signals import SIGNALS
from spikeview.format import label, mads, number, scalar, shown, words
from spikeview.meaning import mean_of
from spikeview.run import Run

# Which column says of whom a number is.
SCOPES = {"grad_norm": "norm_scope"} | dict.fromkeys(
    ("param_norm", "update_norm", "update_ratio", "update_cosine"), "update_scope"
)
_IN_LOGS = {signal.column for signal in SIGNALS if signal.log}
LISTED = 20
LOPSIDED = 1.25
NAMED = 6


def written(run: Run, column: str, position: int) -> str:
    """A cell with its name in front: `loss scale 65536`, `loss (mean of 10 steps) 2.401`, `cosine not applicable`."""
    steps = mean_of(run, column, position)
    mean = "" if steps is None else f" (mean of {steps:,} steps)"
    return f"{label(column)}{mean}{_whose(run, column, position)} {words(run, column, position)}"


def group_name(name: str) -> str:
    """A group by its name: `group encoder`; one without a name of its own is `group 0` as it is recorded."""
    return shown(name if name.startswith("group ") else f"group {name}")


def _whose(run: Run, column: str, position: int) -> str:
    """Where several ranks train, and a norm is of one of them alone, of which."""
    scope = SCOPES.get(column)
    return f" (of rank {run.rank} alone)" if scope and run.text(scope, position) == "local" else ""


def reading(run: Run, baselines: Mapping[str, Baseline], column: str, position: int) -> str:
    """`cosine -0.2584 (baseline +0.4928 ± 0.1297, -5.8 MADs)`; without the bracket where there is no baseline."""
    text = written(run, column, position)
    base = baselines.get(column)
    if base is None or math.isnan(base.center[position]) or not run.recorded(column)[position]:
        return text
    around, deviation = band(column, base, position), float(base.deviation[position])
    away = "" if math.isnan(deviation) else f", {mads(deviation)} MADs"
    return f"{text} (baseline {around}{away})"


def band(column: str, baseline: Baseline, position: int) -> str:
    """`+0.4928 ± 0.1297`; where the band is lopsided, as in logs, `2.003 within 0.7812 to 5.136`."""
    center, lower, upper = (float(part[position]) for part in (baseline.center, baseline.lower, baseline.upper))
    below, above = center - lower, upper - center
    if column in _IN_LOGS or above > LOPSIDED * below:
        return f"{scalar(column, center)} within {scalar(column, lower)} to {scalar(column, upper)}"
    return f"{scalar(column, center)} ± {number((above + below) / 2)}"


def rows_of(run: Run, positions: Iterable[int]) -> tuple[int, ...]:
    """The recorder's row numbers of these positions, the first LISTED of them."""
    return tuple(row_of(run, position) for position in islice(positions, LISTED))


def row_of(run: Run, position: int) -> int:
    """The recorder's row number of a position; the position itself where it has none."""
    return int(run.values("row")[position]) if run.recorded("row")[position] else int(position)


def name_rows(run: Run, positions: Sequence[int] | NDArray[np.int64]) -> str:
    """`row 2`, `rows 2, 3`, `rows 6 to 11`, `rows 1, 5, 9, 12, 20, 33 and 14 more`."""
    count = len(positions)
    if count == 1:
        return f"row {row_of(run, int(positions[0]))}"
    rows = rows_of(run, [*positions[:NAMED], positions[-1]])
    if count > 2 and rows[-1] - rows[0] == count - 1:
        return f"rows {rows[0]} to {rows[-1]}"
    more = f" and {count - NAMED:,} more" if count > NAMED else ""
    return f"rows {', '.join(str(row) for row in rows[: min(count, NAMED)])}{more}"
