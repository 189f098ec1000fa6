"""CSV as tables, block by block: lines of another length than the header are counted and left out."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv as pc

from spikeview.importers.numbers import number
from spikeview.importers.source import Source, as_text, blocks
from spikeview.importers.table import Read, from_rows

DELIMITERS = ",\t;"
EMPTY = ["", "null", "None", "N/A", "n/a", "NA", "-"]


@dataclass
class _Counter:
    """Counts the lines that pyarrow hands back."""

    malformed: int = 0

    def skip(self, row: Any) -> Literal["skip"]:
        self.malformed += 1
        return "skip"


@dataclass(frozen=True)
class Header:
    """The first line of a table: the names of its columns and what stands between them."""

    names: tuple[str, ...]
    delimiter: str


def header(source: Source) -> Header | None:
    """The header of a CSV file; None where its first line is none."""
    lines = source.head.lstrip(b"\n").split(b"\n", 2)
    if len(lines) < 2 or not lines[1].strip():
        return None
    line = lines[0].decode("utf-8", "replace").removeprefix("#").strip()
    delimiter = max(DELIMITERS, key=line.count)
    names = next(csv.reader([line], delimiter=delimiter), [])
    if len(names) < 2 or not all(name.strip() for name in names[1:]) or any(number(name) is not None for name in names):
        return None
    return Header(tuple(_unlike(names)), delimiter)


def read(path: Path, head: Header, tell: Callable[[str], None]) -> Read:
    """All lines of a file with this header."""
    tables: list[pa.Table] = []
    malformed = 0
    for number_of_block, block in enumerate(blocks(path, tell)):
        data = block.lstrip(b"\n").partition(b"\n")[2] if number_of_block == 0 else block
        if data.strip():
            part = _block(as_text(data), head)
            malformed += part.malformed
            tables.append(part.table)
    return Read.of(tables, malformed)


def _block(data: bytes, head: Header) -> Read:
    """The lines of a block. A quote without an end would take the next ones into its cell: its line goes first."""
    if (found := _parsed(data, head)) is not None:
        return found
    lines = data.splitlines(keepends=True)
    kept = [line for line in lines if line.count(b'"') % 2 == 0]
    data, lost = b"".join(kept), len(lines) - len(kept)
    again = (_parsed(data, head) if lost else None) or _by_line(data, head)
    return Read(again.table, again.malformed + lost)


def _parsed(data: bytes, head: Header) -> Read | None:
    """The lines as pyarrow reads them; None where it lost some."""
    counter = _Counter()
    try:
        table = pc.read_csv(
            io.BytesIO(data),
            read_options=pc.ReadOptions(column_names=list(head.names), block_size=max(len(data), 2**16)),
            parse_options=pc.ParseOptions(delimiter=head.delimiter, invalid_row_handler=counter.skip),
            convert_options=pc.ConvertOptions(null_values=EMPTY, strings_can_be_null=True),
        )
    except pa.ArrowException:
        return None
    lost = table.num_rows + counter.malformed < _lines(data) or (counter.malformed > 0 and b'"' in data)
    return None if lost else Read(table, counter.malformed)


def _lines(data: bytes) -> int:
    """How many lines hold anything."""
    if b"\n\n" in data or data.startswith(b"\n"):
        return sum(1 for line in data.split(b"\n") if line)
    return data.count(b"\n") + (not data.endswith(b"\n"))


def _by_line(data: bytes, head: Header) -> Read:
    """Every line by itself, as Python reads it."""
    rows, malformed = [], 0
    for line in data.decode("utf-8", "replace").splitlines():
        try:
            cells = next(csv.reader([line], delimiter=head.delimiter), [])
        except csv.Error:
            cells = []
        if len(cells) == len(head.names) and "\0" not in line:
            rows.append({name: None if cell in EMPTY else cell for name, cell in zip(head.names, cells, strict=True)})
        elif line.strip():
            malformed += 1
    return Read(from_rows(rows), malformed)


def _unlike(names: Sequence[str]) -> list[str]:
    """Names of which no two are alike."""
    found: dict[str, None] = {}
    for name in names:
        again, plain = 2, name.strip()
        while (new := plain if again == 2 and plain not in found else f"{plain} ({again})") in found:
            again += 1
        found[new] = None
    return list(found)
