"""All ranks of a run, opened together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path

from recorder.store import StoreError, is_run
from recorder.store.folder import ranks
from recorder.store.reader import name_ranks, without_others
from spikeview.importers.elsewhere import is_elsewhere
from spikeview.importers.errors import RunError
from spikeview.importers.importer import Asked
from spikeview.importers.opening import open_run
from spikeview.ranks import Ranks
from spikeview.run import Run

Tell = Callable[[str], None]

MOST = 65_536


def open_ranks(path: str | PathLike[str], tell: Tell = lambda text: None, asked: Asked | None = None) -> Ranks:
    """Every rank of a run that can be read; of what is no run directory its one run. `tell` hears how far it is.

    Ranks may be missing, damaged, or of unequal length: the notes say so. Raises RunError where none can be read.
    """
    if not is_elsewhere(path) and is_run(path):
        return _opened(path, {}, tell, asked)
    first = open_run(path, tell=tell)
    there = range(_world_size([first])) if is_elsewhere(path) else ()
    return _made(path, *_each({first.rank, *there}, {first.rank: first}, partial(open_run, path, tell=tell)))


def _opened(path: str | PathLike[str], before: Mapping[int, Run], tell: Tell, asked: Asked | None) -> Ranks:
    """The ranks of a run directory as it is now; those that were opened before go on from there."""
    try:
        found = ranks(Path(path))
    except StoreError as error:
        raise RunError(str(error)) from error
    made = _made(path, *_each(found or [0], before, partial(open_run, path, tell=tell, asked=asked)))
    return replace(made, source=partial(_later, path, asked))


def _later(path: str | PathLike[str], asked: Asked | None, known: Ranks) -> Ranks:
    newer = _opened(path, known.runs, lambda text: None, asked)
    same = newer.runs.keys() == known.runs.keys() and newer.notes == known.notes
    return known if same and all(run is known.runs[rank] for rank, run in newer.runs.items()) else newer


def _each(
    numbers: Iterable[int], before: Mapping[int, Run], read: Callable[[int], Run]
) -> tuple[dict[int, Run], dict[int, RunError]]:
    """The ranks that can be read, and why the others cannot."""
    runs: dict[int, Run] = {}
    left_out: dict[int, RunError] = {}
    for rank in sorted(numbers):
        try:
            runs[rank] = _with_others(before[rank].refresh() if rank in before else read(rank))
        except RunError as error:
            left_out[rank] = error
    if not runs:
        raise next(iter(left_out.values()))
    return runs, left_out


def _with_others(run: Run) -> Run:
    """The run without its note that the other ranks are not shown."""
    notes = without_others(run.notes, run.rank)
    return run if len(notes) == len(run.notes) else replace(run, notes=notes)


def _made(path: str | PathLike[str], runs: Mapping[int, Run], left_out: Mapping[int, RunError]) -> Ranks:
    notes = [f"rank {rank} is left out: {error}" for rank, error in left_out.items()]
    expected = _world_size(runs.values())
    absent = [rank for rank in range(expected) if rank not in runs and rank not in left_out]
    if absent:
        notes.append(f"{name_ranks(absent)} of {expected:,} left no rows")
    notes += _ends(runs)
    for note in dict.fromkeys(note for run in runs.values() for note in run.notes):
        told = [rank for rank, run in runs.items() if note in run.notes]
        notes.append(note if len(told) == len(runs) else f"{name_ranks(told)}: {note}")
    return Ranks(str(path), runs, tuple(notes))


def _ends(runs: Mapping[int, Run]) -> list[str]:
    """That some ranks end before the others."""
    last = {rank: int(run.values("row")[-1]) for rank, run in runs.items() if run.recorded("row")[-1:].any()}
    longest = max(last.values(), default=0)
    short = [rank for rank, row in last.items() if row < longest]
    rows = sorted({last[rank] for rank in short})
    if not short:
        return []
    where = f"row {rows[0]:,}" if len(rows) == 1 else f"rows {rows[0]:,} to {rows[-1]:,}"
    return [f"{name_ranks(short)} {'ends' if len(short) == 1 else 'end'} at {where}, the others at row {longest:,}"]


def _world_size(runs: Iterable[Run]) -> int:
    """How many ranks there should be; 0 where no manifest says so."""
    told = [run.manifest.get("world_size") for run in runs]
    return max((size for size in told if isinstance(size, int) and size <= MOST), default=0)
