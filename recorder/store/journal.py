"""The journal: unsealed rows on disk, readable while they are written and after a kill.

A file is a magic number, a frame holding the columns as JSON, then one frame a record. A frame is its length
(u32), the CRC-32 of its payload (u32), and the payload. A record's payload is the block, the texts it defines
(column u8, code u32, length u32, UTF-8), and the user fields as JSON; most rows end with the block.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from zlib import crc32

from recorder.store.append_file import AppendFile
from recorder.store.layout import Layout
from recorder.store.rows import Record

MAGIC = b"spkjrnl\x01"
FRAME = struct.Struct("<II")
TEXT = struct.Struct("<BII")


def create_journal(path: Path, layout: Layout) -> AppendFile:
    """A new journal, ready for records. Raises OSError, leaving none, where it cannot be made."""
    path.unlink(missing_ok=True)  # one that was begun, and interrupted
    file = AppendFile(path)
    try:
        file.write(MAGIC + frame(json.dumps({"columns": layout.columns}).encode()))
    except OSError:
        file.close()
        path.unlink(missing_ok=True)
        raise
    return file


def encode(record: Record) -> bytes:
    """The frame of a record."""
    payload, defines, user = record
    for column, code, text in defines:
        data = text.encode()
        payload += TEXT.pack(column, code, len(data)) + data
    if user:
        payload += json.dumps(user).encode()
    return frame(payload)


def frame(payload: bytes) -> bytes:
    """A payload with its length and checksum in front."""
    return FRAME.pack(len(payload), crc32(payload)) + payload
