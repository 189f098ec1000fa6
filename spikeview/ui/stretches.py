"""A long run in stretches of rows: what is made of all rows is made without a whole column in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from recorder.store.lazy_table import STRETCH, LazyTable
from spikeview.gathered import Gathered, in_stretches
from spikeview.run import Run

LONG = 50_000

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

    A run that is not long is one stretch. The run keeps the columns `keep`, of numbers. Raises what the job and the
    reading raise.
    """
    if not is_long(run):
        return job.join([job.make(first, rows_of(run, first, len(run) - first) if first else run)])
    kept = [Gathered(name, first, len(run) - first) for name in keep if name in run]
    wanted = [name for name in dict.fromkeys([*job.columns, *keep]) if name in run]

    def made(begin: int) -> Any:
        rows = rows_of(run, begin, STRETCH)
        rows.fetch(wanted)
        for column in kept:
            column.take(begin, rows.values(column.name), rows.recorded(column.name))
        return job.make(begin, rows)

    found = in_stretches(first, len(run), made)
    for column in kept:
        run.keep(column)
    return job.join(found)
