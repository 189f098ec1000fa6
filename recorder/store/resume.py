"""Where a resumed run goes on: the clocks of the rows that are there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from recorder.schema import STEPS
from recorder.store.folder import contents, part_path, table_folder
from recorder.store.parts import read_part


@dataclass(frozen=True)
class Clocks:
    """Segment and number of the next row, and the last row of each optimizer, its columns by name."""

    segment: int
    next_row: int
    last_rows: dict[str, dict[str, Any]]


def read_clocks(run: Path, rank: int) -> Clocks:
    """The clocks of a run whose journals are sealed: those of its first row where it has none."""
    folder = table_folder(run, "steps", rank)
    last_rows: dict[str, dict[str, Any]] = {}
    for number in sorted(contents(folder).parts, reverse=True):
        names, _, _ = read_part(part_path(folder, number), STEPS, ["optimizer"])
        column = names["optimizer"].combine_chunks()
        unseen = [name for name in pc.unique(column).to_pylist() if name is not None and name not in last_rows]
        if unseen:
            rows, _, _ = read_part(part_path(folder, number), STEPS, [column.name for column in STEPS])
            for name in unseen:
                position = int(np.flatnonzero(pc.equal(column, name).to_numpy(zero_copy_only=False))[-1])
                last_rows[name] = rows.slice(position, 1).to_pylist()[0]
    if not last_rows:
        return Clocks(0, 0, {})
    segment = max(int(row["segment"] or 0) for row in last_rows.values())
    return Clocks(segment + 1, max(int(row["row"]) for row in last_rows.values()) + 1, last_rows)
