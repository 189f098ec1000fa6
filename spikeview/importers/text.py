"""Text logs: lines that a program printed, among many that it did not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spikeview.format import plural
from spikeview.importers.assemble import assemble
from spikeview.importers.errors import RunError
from spikeview.importers.importer import Asked
from spikeview.importers.source import Source, blocks
from spikeview.importers.table import from_rows
from spikeview.meaning import Meaning
from spikeview.run import Run

# What launchers put before each line of a process: `[default7]:`, `[rank0]:`, `3: `.
PREFIX = rb"(?P<prefix>\[(?:[a-z]+)?\d+\]:[ ]?|\d+:[ ])?"
NUMBER = rb"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf(?:inity)?)"


@dataclass(frozen=True)
class Lines:
    """Which lines of a text are a log's own: `pattern` has named groups for each kind of line.

    Where it has a group `prefix`, only lines with the prefix of the first one are read. `mark` stands in every line
    that tells the format: finding it is cheap.
    """

    name: str
    mark: bytes
    pattern: re.Pattern[bytes]

    def declines(self, source: Source) -> str | None:
        return None if source.finds(self.mark, self.pattern) else "no line of its kind"


@dataclass
class Gathered:
    """What has been read so far: rows by their names in a run, events, and what was left out on the way."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    repeats: int = 0

    def row(self, **values: Any) -> None:
        """Add a row, unless it repeats the one before: processes without a prefix print the same line each."""
        if self.rows and self.rows[-1] == values:
            self.repeats += 1
        else:
            self.rows.append(values)

    def event(self, kind: str, **values: Any) -> None:
        """Add an event after the last row so far."""
        self.events.append({**values, "kind": kind, "row": max(0, len(self.rows) - 1)})

    def run(
        self, source: Source, lines: Lines, meanings: Mapping[str, Meaning], further: Mapping[str, Any] | None = None
    ) -> Run:
        """The run of what was read; `further` columns stand beside those of the rows."""
        table = from_rows(self.rows)
        columns = dict(zip(table.column_names, table.columns, strict=True)) | dict(further or {})
        notes = list(self.notes)
        if self.repeats:
            notes.append(f"{plural(self.repeats, 'line')} repeated the one before and left out")
        return assemble(source.path, lines.name, columns, meanings, self.events, notes)


def matches(lines: Lines, source: Source, asked: Asked, gathered: Gathered) -> Iterator[re.Match[bytes]]:
    """A log's lines in order, of the process that wrote first: launchers put the lines of all into one file.

    Raises RunError where a mapping is asked for: the format names its columns itself.
    """
    if asked.mapping:
        raise RunError(f"{source.path}: {lines.name} has its own columns; leave --map out, it is for tables")
    own: bytes | None = None
    others: dict[bytes, int] = {}
    for block in blocks(source.path, asked.tell):
        for match in lines.pattern.finditer(block):
            prefix = match["prefix"] or b"" if "prefix" in lines.pattern.groupindex else b""
            own = prefix if own is None else own
            if prefix == own:
                yield match
            else:
                others[prefix] = others.get(prefix, 0) + 1
    if others:
        names = ", ".join(prefix.decode().strip(": ") or "no prefix" for prefix in list(others)[:4])
        gathered.notes.append(f"{plural(sum(others.values()), 'line')} of other processes left out ({names})")


def floats(match: re.Match[bytes], *groups: str) -> Sequence[float | None]:
    """Groups of a match as numbers; None where a group took no part."""
    return [None if match[group] is None else float(match[group]) for group in groups]
