"""Reading a run for a command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from spikeview.commands.interrupt import unwinding
from spikeview.commands.memory import keep_freed_memory, keep_within_memory
from spikeview.commands.progress import progress

if TYPE_CHECKING:
    from spikeview.importers import Asked
    from spikeview.ranks import Ranks
    from spikeview.run import Run


def read(path: str, rank: int | None, asked: Asked | None = None) -> Run:
    """The run at a path or URL. Ctrl-C leaves nothing behind of what was copied to this machine for it."""
    from spikeview.importers import open_run

    keep_within_memory()
    keep_freed_memory()
    with progress() as tell, unwinding():
        return open_run(path, rank, tell, asked)


def read_all(path: str, rank: int | None, asked: Asked) -> Iterator[Run]:
    """Every run at a path or URL, one after the other: a log may hold several, of which one can be asked for."""
    from spikeview.importers import runs_in

    names = [] if asked.run is not None else runs_in(path)
    for name in names if len(names) > 1 else [asked.run]:
        yield read(path, rank, replace(asked, run=name))


def read_ranks(path: str) -> Ranks:
    """All ranks of the run at a path or URL. Ctrl-C as in `read`."""
    from spikeview.importers.all_ranks import open_ranks

    keep_within_memory()
    keep_freed_memory()
    with progress() as tell, unwinding():
        return open_ranks(path, tell)
