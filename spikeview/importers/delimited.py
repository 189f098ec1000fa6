"""CSV of any trainer: columns are found by their names, or told with `--map`."""

from __future__ import annotations

from spikeview.importers import blocks_csv, tabular
from spikeview.importers.errors import RunError
from spikeview.importers.importer import Asked, Importer
from spikeview.importers.source import Source
from spikeview.run import Run

TRIED = 20


def declines(source: Source) -> str | None:
    """None for a file whose first line names columns, where one of the next has as many cells."""
    head = None if source.is_folder else blocks_csv.header(source)
    if head is None:
        return "no header of columns"
    lines = source.head.lstrip(b"\n").split(b"\n", TRIED)[1:TRIED]
    cells = [line.count(head.delimiter.encode()) + 1 for line in lines]
    return None if any(count >= len(head.names) for count in cells) else "no header of columns"


def read(source: Source, asked: Asked) -> Run:
    """One row a line. Raises RunError where no column is a loss or a gradient norm."""
    head = blocks_csv.header(source)
    if head is None:
        raise RunError(f"{source.path}: has no header of columns; write their names into its first line")
    return tabular.run_of(tabular.Log(source.path, "CSV", blocks_csv.read(source.path, head, asked.tell)), asked)


CSV = Importer("CSV", declines, read)
