"""Diagnosing runs for a command that writes about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from spikeview.commands.reading import read, read_ranks

if TYPE_CHECKING:
    from spikeview.importers import Asked
    from spikeview.rules.diagnosis import Diagnosis

Rank = int | str | None
Diagnosing = Callable[[], "Diagnosis"]


def diagnosis_of(path: str, rank: Rank, asked: Asked) -> Diagnosis:
    """The diagnosis of one run, or of all its ranks as one."""
    from spikeview.rules.across_ranks import diagnose_ranks
    from spikeview.rules.diagnosis import diagnose

    return diagnose_ranks(read_ranks(path)) if isinstance(rank, str) else diagnose(read(path, rank, asked))


def diagnosing(path: str, rank: Rank, asked: Asked) -> dict[str, Diagnosing]:
    """What diagnoses each run at a path, by its name: that of a log, or its place within the directory."""
    from spikeview.importers import runs_in
    from spikeview.importers.places import places

    found = places(path)
    if found != [path]:
        names = (Path(place).relative_to(path).as_posix() for place in found)
        return {name: partial(diagnosis_of, place, rank, asked) for name, place in zip(names, found, strict=True)}
    names_within = runs_in(path) if asked.run is None else []
    if len(names_within) > 1:
        return {name: partial(diagnosis_of, path, rank, replace(asked, run=name)) for name in names_within}
    return {path: partial(diagnosis_of, path, rank, asked)}
