"""Logs as their writers write them, small enough to be read here."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from spikeview.importers import Asked, open_run
from spikeview.importers.tensorboard.crc32c import masked
from spikeview.run import Run


def written(path: Path, text: str | Iterable[str]) -> Path:
    """A file with these lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else "".join(f"{line}\n" for line in text), encoding="utf-8")
    return path


def opened(path: Path, **asked: str) -> Run:
    """The run in a file, where `asked` maps columns to names."""
    return open_run(path, asked=Asked(mapping=asked))


def column(run: Run, name: str) -> list[object]:
    """A column with None where it was not recorded."""
    return run.table[name].to_pylist()


def number(value: int) -> bytes:
    """A whole number as protocol buffers write it."""
    value, out = value % 2**64, b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(place: int, data: bytes) -> bytes:
    """A field of bytes."""
    return number(place << 3 | 2) + number(len(data)) + data


def event(tag: str, step: int, value: float, time: float = 1.7e9, tensor: bool = False) -> bytes:
    """A scalar as an event; `tensor` as TensorFlow 2 writes it, else as PyTorch does."""
    packed = struct.pack("<f", value)
    held = field(8, b"\x08\x01\x12\x00" + field(4, packed)) if tensor else b"\x15" + packed
    inner = field(1, tag.encode()) + held + (field(9, field(1, field(1, b"scalars"))) if tensor else b"")
    told = b"" if step == 0 else b"\x10" + number(step)
    return b"\x09" + struct.pack("<d", time) + told + field(5, field(1, inner))


def records(*events: bytes) -> bytes:
    """Events in the frames of an event file."""
    return b"".join(
        (length := struct.pack("<Q", len(data))) + checksum(length) + data + checksum(data) for data in events
    )


def checksum(data: bytes) -> bytes:
    return int(masked(np.frombuffer(data, np.uint8)[None])[0]).to_bytes(4, "little")


def wandb_file(rows: Sequence[dict[str, object]]) -> bytes:
    """A `.wandb` file with a history, in blocks that a record may cross."""
    out = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
    for step, row in enumerate(rows):
        items = [
            field(1, field(2, name.encode()) + field(16, json.dumps(value).encode())) for name, value in row.items()
        ]
        data = b"\x08" + number(step + 1) + field(2, b"".join(items) + field(2, b"\x08" + number(step)))
        kind = 1
        while data or kind == 1:
            room = 32768 - len(out) % 32768
            if room <= 7:
                out += bytes(room)
                continue
            piece, data = data[: room - 7], data[room - 7 :]
            code = {1: 1 if not data else 2, 3: 3 if data else 4}[kind]
            out += struct.pack("<IHB", zlib.crc32(piece, zlib.crc32(bytes([code]))), len(piece), code) + piece
            kind = 3
    return out
