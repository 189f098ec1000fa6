"""The recorder's own run directory, as an importer."""

from __future__ import annotations

from dataclasses import replace

from spikeview.importers import run_directory
from spikeview.importers.errors import RunError
from spikeview.importers.importer import Asked, Importer
from spikeview.importers.source import Source
from spikeview.meaning import noted
from spikeview.run import Run


def declines(source: Source) -> str | None:
    """None for a folder with a manifest."""
    return None if run_directory.recognises(source.path) else "no run.json"


def read(source: Source, asked: Asked) -> Run:
    """One rank of it. Raises RunError for what is none, and where a mapping is asked for."""
    if asked.mapping:
        raise RunError(f"{source.path}: is a recorded run, whose columns have their names; leave --map out")
    run = run_directory.read(source.path, asked.rank, asked.lazily)
    return replace(run, notes=(*noted(run), *run.notes)) if noted(run) else run


RUN_DIRECTORY = Importer("run directory", declines, read)
