"""A long run in stretches of rows: what is made of all rows is made without a whole column in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from recorder.store.lazy_table import STRETCH, LazyTable
from spikeview.cancelling import checkpoint
from spikeview.run import Run

LONG = 50_000
THREADS = min(4, os.cpu_count() or 1)

Made = TypeVar("Made")


def is_long(run: Run) -> bool:
    """Whether the rows are on the disk, and so many that they are better not read at once."""
    return isinstance(run.table, LazyTable) and len(run) > LONG


def rows_of(run: Run, first: int, rows: int) -> Run:
    """So many rows from a position on, of which a column is read when it is asked for."""
    return Run(run.path, run.table.slice(first, rows), run.manifest, rank=run.rank)


def in_stretches(run: Run, names: Iterable[str], make: Callable[[int, Run], Made], first: int = 0) -> list[Made]:
    """What `make` makes of each stretch from a position on, in order; `names` are the columns that it asks for.

    It is given the position of the first row, and the rows. Several at a time: Arrow and numpy let go of the
    interpreter. Raises what `make` and the reading raise.
    """
    wanted = [name for name in dict.fromkeys(names) if name in run]

    def made(begin: int) -> Made:
        rows = rows_of(run, begin, STRETCH)
        rows.fetch(wanted)
        return make(begin, rows)

    found = []
    with ThreadPoolExecutor(THREADS) as pool:
        for each in pool.map(made, range(first, len(run), STRETCH)):
            checkpoint()
            found.append(each)
    return found
