"""The journal: unsealed rows on disk, readable while they are written and after a kill.

A file is a magic number, a frame holding the columns as JSON, then one frame a record. A frame is its length
(u32), the CRC-32 of its payload (u32), and the payload. A record's payload is the block, the texts it defines
(column u8, code u32, length u32, UTF-8), and the user fields as JSON; most rows end with the block.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np

from recorder.store.errors import StoreError
from recorder.store.files import AppendFile
from recorder.store.layout import Layout
from recorder.store.regular import regular_size
from recorder.store.rows import Record, Rows
from recorder.store.values import Scalar, clean_text, user_scalar

MAGIC = b"spkjrnl\x01"
TORN = "the last row was being written when the run ended"

_FRAME = struct.Struct("<II")
_TEXT = struct.Struct("<BII")
_HEAD = struct.Struct("<IBB")


@dataclass(frozen=True)
class Journal:
    """What a journal holds: its whole rows, and what had to be left out, if anything."""

    rows: Rows
    note: str | None


def create_journal(path: Path, layout: Layout) -> AppendFile:
    """A new journal, ready for records."""
    path.unlink(missing_ok=True)
    file = AppendFile(path)
    file.append(MAGIC + _frame(json.dumps({"columns": layout.columns}).encode()))
    return file


def encode(record: Record) -> bytes:
    """The frame of a record."""
    if not record.defines and not record.user:
        return _frame(record.block)
    parts = [record.block]
    for column, code, text in record.defines:
        data = text.encode()
        parts += [_TEXT.pack(column, code, len(data)), data]
    if record.user:
        parts.append(json.dumps(record.user).encode())
    return _frame(b"".join(parts))


def read_journal(path: Path) -> Journal | None:
    """The rows of a journal up to the first that is not whole; None where even its head was not finished.

    Raises FileNotFoundError where it is gone (sealed meanwhile), StoreError where it is no journal of ours.
    """
    regular_size(path, path.parents[2])
    data = path.read_bytes()
    start = len(MAGIC)
    if data[:start] != MAGIC[: len(data)]:
        raise StoreError(path, "is not a journal that this version can read", "update spikeview or move the file away")
    head = _payload(data, start)
    if head is None:
        return None
    try:
        rows = Rows(_layout(head))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise StoreError(path, f"has columns that cannot be read ({error})", "update spikeview") from None
    offset = start + _FRAME.size + len(head)
    while (payload := _payload(data, offset)) is not None:
        try:
            rows.put(_decode(payload, rows.layout))
        except (ValueError, IndexError, struct.error, RecursionError, TypeError):
            break
        offset += _FRAME.size + len(payload)
    _check_codes(path, rows)
    return Journal(rows, _note(path, data, offset))


def _layout(head: bytes) -> Layout:
    columns = json.loads(head)["columns"]
    for name, _ in columns:
        if not name or name != clean_text("column", name) or name.startswith("#"):
            raise ValueError(f"{name!r:.80} is no name of a column")
    return Layout(columns)


def _frame(payload: bytes) -> bytes:
    return _FRAME.pack(len(payload), crc32(payload)) + payload


def _payload(data: bytes, offset: int) -> bytes | None:
    if offset + _FRAME.size > len(data):
        return None
    length, checksum = _FRAME.unpack_from(data, offset)
    payload = data[offset + _FRAME.size : offset + _FRAME.size + length]
    return payload if len(payload) == length and length and crc32(payload) == checksum else None


def _decode(payload: bytes, layout: Layout) -> Record:
    block = payload[: layout.size]
    if len(block) < layout.size:
        raise ValueError("shorter than a block")
    position, _, count = _HEAD.unpack_from(block)
    end = layout.size
    defines: list[tuple[int, int, str]] = []
    for _ in range(count):
        column, code, length = _TEXT.unpack_from(payload, end)
        if column >= len(layout.texts):
            raise ValueError("no such text column")
        end += _TEXT.size + length
        if end > len(payload):
            raise ValueError("a text ends beyond its record")
        defines.append((column, code, payload[end - length : end].decode()))
    return Record(position, block, defines, _user(payload[end:]))


def _user(data: bytes) -> dict[str, Scalar]:
    if not data:
        return {}
    fields = json.loads(data)
    if not isinstance(fields, dict):
        raise ValueError("user fields are not an object")
    return {clean_text("user field", name): user_scalar(name, value) for name, value in fields.items()}


def _check_codes(path: Path, rows: Rows) -> None:
    blocks = np.frombuffer(bytes(rows.blocks), rows.layout.dtype)
    for name, texts in zip(rows.layout.texts, rows.texts, strict=True):
        if len(blocks) and int(blocks[name].max()) >= len(texts):
            raise StoreError(path, f"is damaged: {name} refers to a text it does not hold", "move the file away")


def _note(path: Path, data: bytes, offset: int) -> str | None:
    if offset == len(data):
        return None
    rest = data[offset:]
    # A power cut can leave zeros where the last bytes were not on the disk yet.
    torn = len(rest) < _FRAME.size or not any(rest) or _FRAME.size + _FRAME.unpack_from(rest)[0] >= len(rest)
    return (
        TORN
        if torn and _payload(data, offset) is None
        else f"{path.name} is damaged at byte {offset}: {len(rest)} bytes of rows after it are left out"
    )
