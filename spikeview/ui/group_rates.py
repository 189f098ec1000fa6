"""The learning rates of an optimizer's further parameter groups, which are recorded as one text a row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spikeview.run import Floats, Run

COLUMN = "group_lrs"


def further_groups(run: Run) -> int:
    """How many groups there are beside the first, as the rows have most of."""
    if COLUMN not in run:
        return 0
    spaces = pc.max(pc.count_substring(run.table[COLUMN], " ")).as_py()
    return 0 if spaces is None else int(spaces) + 1


def group_rates(run: Run) -> Floats:
    """[groups, rows]: NaN where a row has none, or no number."""
    groups = further_groups(run)
    rates = np.full((groups, len(run)), np.nan)
    if not groups:
        return rates
    texts = run.table[COLUMN]
    counts = pc.fill_null(pc.add(pc.count_substring(texts, " "), 1), 0).to_numpy()
    for count in np.unique(counts[counts > 0]).tolist():
        held = counts == count
        numbers = _numbers([str(text) for text in pc.filter(texts, pa.array(held)).to_pylist()])
        if len(numbers) == count * held.sum():
            rates[:count, held] = numbers.reshape(-1, count).T
    return rates


def of_row(run: Run, position: int) -> str:
    """The rates of one row as they were recorded, apart by commas; empty where there are none."""
    return (run.text(COLUMN, position) or "").replace(" ", ", ")


def _numbers(texts: list[str]) -> Floats:
    try:
        return np.array(" ".join(texts).split(" "), dtype=np.float64)
    except ValueError:  # not what a recorder writes
        return np.zeros(0)
