"""A long run in stretches of rows: what is made of all rows is made without a whole column in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from recorder.schema import COLUMNS, Mask
from recorder.store.lazy_table import STRETCH, LazyTable
from spikeview.cancelling import checkpoint
from spikeview.cells import compact
from spikeview.run import Run

LONG = 50_000
THREADS = min(4, os.cpu_count() or 1)

Found = TypeVar("Found")


@dataclass(frozen=True)
class Job(Generic[Found]):
    """Something to be found in the rows of a run.

    `make` is given a stretch of them and the position of its first, `join` what was made of all stretches, in order;
    `columns` are those that `make` asks for.
    """

    columns: tuple[str, ...]
    make: Callable[[int, Run], Any]
    join: Callable[[list[Any]], Found]


def together(jobs: Sequence[Job[Any]], join: Callable[[list[Any]], Found]) -> Job[Found]:
    """One job of several: `join` is given what they find."""
    columns = tuple(dict.fromkeys(name for job in jobs for name in job.columns))

    def make(first: int, rows: Run) -> list[Any]:
        return [job.make(first, rows) for job in jobs]

    def joined(made: list[list[Any]]) -> Found:
        return join([job.join([each[at] for each in made]) for at, job in enumerate(jobs)])

    return Job(columns, make, joined)


def is_long(run: Run) -> bool:
    """Whether the rows are on the disk, and so many that they are better not read at once."""
    return isinstance(run.table, LazyTable) and len(run) > LONG


def rows_of(run: Run, first: int, rows: int) -> Run:
    """So many rows from a position on, of which a column is read when it is asked for."""
    return Run(run.path, run.table.slice(first, rows), run.manifest, rank=run.rank)


def found_in(run: Run, job: Job[Found], first: int = 0, keep: Sequence[str] = ()) -> Found:
    """What a job finds in the rows from a position on; each of them is read once.

    Several stretches at a time: Arrow and numpy let go of the interpreter. A run that is not long is one stretch. The
    run keeps the columns `keep`, of whole numbers or truths. Raises what the job and the reading raise.
    """
    if not is_long(run):
        return job.join([job.make(first, rows_of(run, first, len(run) - first) if first else run)])
    kept = [Kept(name, len(run) - first) for name in keep if name in run]
    wanted = [name for name in dict.fromkeys([*job.columns, *keep]) if name in run]

    def made(begin: int) -> Any:
        rows = rows_of(run, begin, STRETCH)
        rows.fetch(wanted)
        for each in kept:
            each.take(begin - first, rows)
        return job.make(begin, rows)

    found, pool = [], ThreadPoolExecutor(THREADS)
    try:
        for each in pool.map(made, range(first, len(run), STRETCH)):
            checkpoint()
            found.append(each)
    finally:
        pool.shutdown(cancel_futures=True)
    for column in kept:
        run.keep(column.name, first, column.values, column.recorded)
    return job.join(found)


class Kept:
    """A column that is put together of its stretches, [rows], and where it is null, in stretches that say so."""

    def __init__(self, name: str, rows: int) -> None:
        self.name = name
        kind = np.bool_ if COLUMNS[name].dtype == "bool" else np.int64
        self.values: NDArray[Any] = np.empty(rows, dtype=kind)
        self._recorded: dict[int, Mask] = {}

    def take(self, first: int, rows: Run) -> None:
        """Put a stretch in its place."""
        self.values[first : first + len(rows)] = rows.values(self.name)
        recorded = rows.recorded(self.name)
        if not compact(recorded).all():
            self._recorded[first] = recorded

    @property
    def recorded(self) -> Mask:
        """[rows]: where the column is not null."""
        everywhere = np.broadcast_to(np.True_, len(self.values))  # takes no memory
        if not self._recorded:
            return everywhere
        mask = everywhere.copy()
        for first, recorded in self._recorded.items():
            mask[first : first + len(recorded)] = recorded
        return mask
