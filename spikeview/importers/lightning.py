"""Lightning's CSVLogger: `metrics.csv`, with `step` and `epoch` beside the metrics of whoever logged."""

from __future__ import annotations

from spikeview.importers import blocks_csv, tabular
from spikeview.importers.blocks_csv import Header
from spikeview.importers.errors import RunError
from spikeview.importers.importer import Asked, Importer
from spikeview.importers.source import Source
from spikeview.meaning import BEFORE, ONE_RANK, STEP, Meaning
from spikeview.run import Run

LOG = "metrics.csv"

# `log` keeps what the last batch of this process gave, unless the module asked for more (sync_dist, reduce_fx).
MEANINGS = {"loss": Meaning("", STEP, BEFORE, ONE_RANK), "lr": Meaning("", STEP, BEFORE)}


def declines(source: Source) -> str | None:
    """None for a CSV with `step`, `epoch` and a metric of either, and for a folder with such a file."""
    head = _header(source)
    if head is None:
        return f"no {LOG}" if source.is_folder else "no step and epoch columns"
    forked = any(name.endswith(("_step", "_epoch")) for name in head.names)
    named = source.is_folder or source.path.name == LOG
    return None if {"step", "epoch"} <= set(head.names) and (forked or named) else "no step and epoch columns"


def read(source: Source, asked: Asked) -> Run:
    """One row a step: what was logged of it on several lines is joined. Epoch means become events."""
    path, head = source.holds(LOG) or source.path, _header(source)
    if head is None:
        raise RunError(f"{path}: has no header of columns; write their names into its first line")
    part = blocks_csv.read(path, head, asked.tell)
    return tabular.run_of(tabular.Log(path, "Lightning metrics", part, MEANINGS, is_told=True), asked)


def _header(source: Source) -> Header | None:
    if not source.is_folder:
        return blocks_csv.header(source)
    found = source.holds(LOG)
    return blocks_csv.header(Source(found)) if found else None


LIGHTNING = Importer("Lightning metrics.csv", declines, read)
