"""A local W&B run: the history in its `.wandb` file, read without the service; older runs have JSON lines."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from spikeview.format import plural
from spikeview.importers import blocks_json, huggingface, tabular
from spikeview.importers.errors import RunError
from spikeview.importers.importer import Asked, Importer
from spikeview.importers.source import Source, refuse_pointer
from spikeview.importers.table import Read, from_rows
from spikeview.importers.wire import BYTES, fields
from spikeview.run import Run

MARK = b":W&B"
HISTORY = "files/wandb-history.jsonl"
HEADER, BLOCK = 7, 32768
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
_HEAD = struct.Struct("<IHB")


def declines(source: Source) -> str | None:
    """None for a `.wandb` file, a run's folder, and a folder with such folders."""
    if source.is_folder:
        return None if _folders(source.path) else "no W&B run"
    return None if source.head.startswith(MARK) else "no W&B records"


def runs(source: Source) -> Sequence[str]:
    """The folders of runs, by their names; none for a single run."""
    if not source.is_folder or _own(source.path):
        return ()
    return tuple(place.name for place in _folders(source.path))


def read(source: Source, asked: Asked) -> Run:
    """One row a step of the history. Raises RunError where it holds none."""
    folder = source.path
    if names := runs(source):
        folder = next(place for place in _folders(source.path) if place.name == (asked.run or names[0]))
    file = source.path if not source.is_folder else _own(folder)
    if file is None:
        raise RunError(f"{folder}: holds no W&B history; give the folder of a run")
    if file.suffix == ".jsonl":
        part, damaged = blocks_json.read(file, asked.tell), 0
    else:
        rows, damaged = _history(file)
        part = Read(from_rows(rows))
    if not part.table.num_rows:
        raise RunError(f"{file}: holds no history yet; log a step first")
    meanings = huggingface.MEANINGS if huggingface.is_its_log(part.table.column_names) else {}
    notes = [f"{plural(damaged, 'damaged record')} left out"] if damaged else []
    return tabular.run_of(tabular.Log(folder, "a local W&B run", part, meanings, notes=notes, is_told=True), asked)


def _folders(place: Path) -> list[Path]:
    """The folder itself where it is a run's, else those below it, oldest first. `latest-run` is a link to one."""
    if _own(place):
        return [place]
    inside = place / "wandb" if (place / "wandb").is_dir() else place
    return sorted(each for each in inside.glob("*run-*") if not each.is_symlink() and _own(each))


def _own(folder: Path) -> Path | None:
    """The file with the history of a run's folder."""
    return next(iter(sorted(folder.glob("*.wandb"))), folder / HISTORY if (folder / HISTORY).is_file() else None)


def _history(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The rows of a history, and how many records are damaged."""
    refuse_pointer(path)
    rows: list[dict[str, Any]] = []
    damaged = 0
    for record in _records(path.read_bytes()):
        try:
            row = None if record is None else _row(record)
        except ValueError:
            row, record = None, None
        damaged += record is None
        if row:
            rows.append(row)
    return rows, damaged


def _records(data: bytes) -> Iterator[bytes | None]:
    """The records of a log in blocks, as LevelDB writes them: whole, or in pieces of which none crosses a block.

    None for one that is damaged. The end of a run that still writes is no damage.
    """
    at, pieces = HEADER, b""
    while at + HEADER <= len(data):
        if BLOCK - at % BLOCK < HEADER:
            at += BLOCK - at % BLOCK
            continue
        checksum, length, kind = _HEAD.unpack_from(data, at)
        if kind == 0 and length == 0:  # room that was kept and not written
            at += BLOCK - at % BLOCK
            continue
        piece = data[at + HEADER : at + HEADER + length]
        if len(piece) < length:
            return
        at += HEADER + length
        if zlib.crc32(piece, zlib.crc32(bytes([kind]))) != checksum or not FULL <= kind <= LAST:
            pieces = b""
            at += BLOCK - at % BLOCK if kind > LAST else 0
            yield None
            continue
        pieces = piece if kind in (FULL, FIRST) else pieces + piece
        if kind in (FULL, LAST):
            yield pieces


def _row(record: bytes) -> dict[str, Any]:
    """The values of a history record by name; empty for a record of another kind."""
    row: dict[str, Any] = {}
    for part in fields(record, 0, len(record)):
        if part.number != 2 or part.kind != BYTES:
            continue
        for item in fields(record, part.start, part.end):
            if item.number == 1 and item.kind == BYTES:
                row |= _item(record, item.start, item.end)
            elif item.number == 2 and item.kind == BYTES:
                row["_step"] = next(
                    (each.whole for each in fields(record, item.start, item.end) if each.number == 1), 0
                )
    return row


def _item(record: bytes, at: int, end: int) -> dict[str, Any]:
    """One named value, as JSON. A name may come in parts."""
    name: list[str] = []
    value = b""
    for part in fields(record, at, end):
        text = record[part.start : part.end]
        if part.number in (1, 2):
            name.append(text.decode("utf-8", "replace"))
        elif part.number == 16:
            value = text
    try:
        return {"/".join(name): json.loads(value)}
    except (ValueError, RecursionError):
        return {}


WANDB_RUN = Importer("local W&B run", declines, read, runs)
