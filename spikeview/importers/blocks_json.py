"""JSON lines as tables, block by block: fast where every line is sound, line by line where one is not."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pj

from spikeview.importers.source import as_text, blocks
from spikeview.importers.table import Read, from_rows

FEW = 64
PIECES = 8


def read(path: Path, tell: Callable[[str], None]) -> Read:
    """All objects of a file, one a line. What is no object is counted."""
    tables: list[pa.Table] = []
    malformed = 0
    for block in blocks(path, tell):
        for part in _tables(as_text(block)):
            tables += [part.table] if part.table.num_rows else []
            malformed += part.malformed
    return Read.of(tables, malformed)


def _tables(block: bytes, filtered: bool = False) -> Iterator[Read]:
    """The lines of a block. Where it does not parse as a whole, lines that are no object by their looks go first.

    What then still does not is cut in pieces, until the bad lines stand alone.
    """
    if not block.strip():
        return
    try:
        options = pj.ReadOptions(block_size=max(len(block), 2**16))
        yield Read(pj.read_json(io.BytesIO(block), read_options=options))
        return
    except pa.ArrowException:
        lines = block.splitlines(keepends=True)
    if len(lines) <= FEW:
        yield _by_line(lines)
    elif not filtered:
        kept = [line for line in lines if _looks_sound(line) or _object(line) is not None or not line.strip()]
        yield Read(pa.table({}), len(lines) - len(kept))
        yield from _tables(b"".join(kept), filtered=True)
    else:
        size = -(-len(lines) // PIECES)
        for first in range(0, len(lines), size):
            yield from _tables(b"".join(lines[first : first + size]), filtered=True)


def _looks_sound(line: bytes) -> bool:
    return line.startswith(b"{") and line.endswith((b"}\n", b"}"))


def _by_line(lines: list[bytes]) -> Read:
    told = [line for line in lines if line.strip()]
    rows = [row for line in told if (row := _object(line)) is not None]
    return Read(from_rows(rows), len(told) - len(rows))


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
