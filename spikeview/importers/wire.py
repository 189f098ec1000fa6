"""The wire format of protocol buffers, as far as two readers here need it: fields by number, nothing declared."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class Field(NamedTuple):
    """One field of a message: its number and kind, its value where it is a whole number, and where its bytes lie."""

    number: int
    kind: int
    whole: int
    start: int
    end: int


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A whole number and the place after it. Raises ValueError where it does not end."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number without an end")


def fields(data: bytes, at: int, end: int) -> Iterator[Field]:
    """The fields of the message that lies between two places. Raises ValueError for what is none."""
    while at < end:
        key, at = varint(data, at, end)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, after = varint(data, at, end)
            yield Field(number, kind, value, at, after)
            at = after
            continue
        size = {FIXED64: 8, FIXED32: 4}.get(kind, -1)
        if kind == BYTES:
            size, at = varint(data, at, end)
        if size < 0 or at + size > end:
            raise ValueError(f"field {number} is damaged")
        yield Field(number, kind, 0, at, at + size)
        at += size


def double(data: bytes, at: int) -> float:
    """The float64 at a place."""
    return float(struct.unpack_from("<d", data, at)[0])


def single(data: bytes, at: int) -> float:
    """The float32 at a place."""
    return float(struct.unpack_from("<f", data, at)[0])
