"""What an importer is: a name, a word on why it declines, and how it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from spikeview.importers.source import Source
from spikeview.run import Run


def _silent(text: str) -> None:
    """Nobody waits for a word."""


@dataclass(frozen=True)
class Asked:
    """What was asked for beside the path.

    `rank` of a run directory (None: the first there is); `mapping` from columns of a run to names in the log, where the
    guess is not wanted; `run` is the name of one of several runs in one place. Of a run directory columns are read
    `lazily`, when they are asked for. `tell` hears how far the reading is.
    """

    rank: int | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    run: str | None = None
    lazily: bool = False
    tell: Callable[[str], None] = _silent


@dataclass(frozen=True)
class Importer:
    """One format.

    `declines` says in a few words why a place is not of it, and None where it is. `read` makes a Run, and raises
    RunError where it cannot. `runs` names the runs in a place that holds several; where it names none, there is one.
    `among_others` is for files that may lie anywhere: a directory is one of these only where no other is in it.
    """

    name: str
    declines: Callable[[Source], str | None]
    read: Callable[[Source, Asked], Run]
    runs: Callable[[Source], Sequence[str]] = lambda source: ()
    among_others: bool = False
