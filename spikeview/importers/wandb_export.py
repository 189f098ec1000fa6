"""CSV files that the W&B website exports: a chart with one or several runs. A table of runs is refused in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from spikeview.format import plural
from spikeview.importers import blocks_csv, tabular
from spikeview.importers.errors import RunError
from spikeview.importers.importer import Asked, Importer
from spikeview.importers.naming import plain_name
from spikeview.importers.source import Source
from spikeview.importers.table import Read
from spikeview.run import Run

# `my run - train/loss`, and beside it the smallest and largest value of the steps that one row stands for.
_COLUMN = re.compile(r"(?P<run>.+?) - (?P<metric>.+?)(?P<edge>__MIN|__MAX)?$")
_TABLE = {"name", "state", "created", "runtime"}


def declines(source: Source) -> str | None:
    """None for a chart's CSV. Raises RunError for a table of runs, which has the same look and no history."""
    head = None if source.is_folder else blocks_csv.header(source)
    if head is None:
        return "no header of a chart"
    if {plain_name(name) for name in head.names} >= _TABLE:
        raise RunError(
            f"{source.path}: is a table of runs, one line a run, and holds no history; "
            "export a chart of one run's loss instead (its menu, Export data, CSV)"
        )
    return None if any(_COLUMN.fullmatch(name) for name in head.names[1:]) else "no header of a chart"


def runs(source: Source) -> Sequence[str]:
    """The runs in a chart, in the order of their columns."""
    head = blocks_csv.header(source)
    matches = (_COLUMN.fullmatch(name) for name in (head.names[1:] if head else ()))
    return tuple(dict.fromkeys(match["run"] for match in matches if match))


def read(source: Source, asked: Asked) -> Run:
    """The rows of one run, under its own names; rows in which only others have values are left out."""
    head = blocks_csv.header(source)
    if head is None:
        raise RunError(f"{source.path}: has no header of columns; export the chart again")
    run = asked.run or runs(source)[0]
    whole = blocks_csv.read(source.path, head, asked.tell)
    own = [(name, match) for name in head.names[1:] if (match := _COLUMN.fullmatch(name)) and match["run"] == run]
    table = whole.table.select([head.names[0], *(name for name, _ in own)])
    table = table.rename_columns([head.names[0], *(match["metric"] + (match["edge"] or "") for _, match in own)])
    part = Read(table.filter(pc.is_valid(table[1])), whole.malformed)
    log = tabular.Log(f"{source.path}/{run}", "a W&B chart", part, notes=_buckets(part), is_told=True)
    return tabular.run_of(log, asked)


def _buckets(part: Read) -> list[str]:
    """That the website thinned the history out, where the edges of a row are apart."""
    names = set(part.table.column_names)
    for name in part.table.column_names:
        if not {f"{name}__MIN", f"{name}__MAX"} <= names:
            continue
        low, high = (part.table[f"{name}{edge}"].to_numpy() for edge in ("__MIN", "__MAX"))
        if apart := int(np.count_nonzero(low != high)):
            return [f"W&B made means of several steps on {plural(apart, 'row')}: {name}__MAX holds the largest values"]
    return []


WANDB_EXPORT = Importer("W&B chart CSV", declines, read, runs)
