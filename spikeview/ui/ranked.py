"""A run with the other ranks of its training: opened together, and read again later."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

from recorder.store import is_run
from recorder.store.folder import ranks
from spikeview.importers import Asked, open_run
from spikeview.importers.all_ranks import open_ranks
from spikeview.ranks import Ranks
from spikeview.run import Run
from spikeview.ui.task import Tell

MOST_RANKS = 64


@dataclass(frozen=True, eq=False, kw_only=True)
class RankedRun(Run):
    """One rank's run that knows all of them."""

    ranks: Ranks


def read(path: str, tell: Tell, asked: Asked | None = None) -> Run:
    """The run at a path; of a run directory with several ranks the first of them, which knows the others.

    `asked` is what was asked for of a log. Columns of a run directory are read when they are asked for.
    Raises what `open_run` raises.
    """
    asked = replace(asked or Asked(), lazily=True)
    if is_run(path) and 1 < len(ranks(Path(path))) <= MOST_RANKS:
        together = open_ranks(path, tell, asked)
        return _ranked(together, together.first.rank)
    return open_run(path, tell=tell, asked=asked)


def later(run: Run) -> Run:
    """The run as it is now; itself where nothing is new. Raises RunError where it cannot be read any more."""
    if not isinstance(run, RankedRun):
        return run.refresh()
    together = run.ranks.refresh()
    return run if together is run.ranks else _ranked(together, run.rank)


def of_rank(run: RankedRun, rank: int) -> Run:
    """Another rank of the same training."""
    return _ranked(run.ranks, rank)


def _ranked(together: Ranks, rank: int) -> Run:
    run = together.runs.get(rank, together.first)
    known = {each.name: getattr(run, each.name) for each in fields(run)}
    return RankedRun(**{**known, "notes": together.notes}, ranks=together)
