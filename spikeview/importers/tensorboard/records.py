"""The records of an event file: length, its checksum, data, their checksum. Damage is skipped and counted."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spikeview.importers.source import refuse_pointer
from spikeview.importers.tensorboard.crc32c import masked

HEADER, FOOTER = 12, 4
BLOCK = 16 * 2**20
LARGEST = 2**31
FIRST_HEADER = struct.Struct("<QI")
_LENGTH = struct.Struct("<Q")

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """Some records of a file in order: each begins in `data` at its place and is as long as its length.

    `damaged` counts those that were left out.
    """

    data: bytes
    places: Places
    lengths: Places
    damaged: int


def is_event_file(head: bytes) -> bool:
    """Whether bytes begin with the header of a record."""
    if len(head) < HEADER + FOOTER:
        return False
    return bool(_sound(np.frombuffer(head[:HEADER], np.uint8)[None])[0])


def blocks(path: Path, tell: Callable[[str], None]) -> Iterator[Block]:
    """The sound records of a file. A record that was still being written is left out."""
    refuse_pointer(path)
    total, done, rest = path.stat().st_size or 1, 0, b""
    with path.open("rb") as file:
        while data := file.read(BLOCK):
            done += len(data)
            tell(f"reading {path.name}: {100 * done // total} %")
            block, used = _block(rest + data, last=done >= total)
            rest = (rest + data)[used:]
            yield block


def _block(data: bytes, last: bool) -> tuple[Block, int]:
    """The whole records at the start of some bytes, and how many bytes they take."""
    parts: list[tuple[Places, Places]] = []
    damaged = at = 0
    bytes_ = np.frombuffer(data, np.uint8)
    while True:
        found, sizes, after = _walk(data, at)
        sound = _sound(gathered(bytes_, found, HEADER)) if len(found) else np.zeros(0, np.bool_)
        broken = int(np.argmin(sound)) if len(sound) and not sound.all() else len(found)
        parts.append((found[:broken], sizes[:broken]))
        lost = int(found[broken]) if broken < len(found) else after
        unfinished = broken == len(found) and not _damaged_at(bytes_, lost)
        if unfinished:
            at = lost
            break
        damaged += 1
        at = _next(bytes_, lost + 1)
        if at < 0:
            at = len(data) if last else max(lost, len(data) - HEADER)
            break
    starts, lengths = (np.concatenate(each) for each in zip(*parts, strict=True))
    starts = starts + HEADER
    kept = _undamaged(bytes_, starts, lengths)
    return Block(data, starts[kept], lengths[kept], damaged + int(np.count_nonzero(~kept))), at


def _walk(data: bytes, at: int) -> tuple[Places, Places, int]:
    """Where records begin and how long they are, one after the other, as far as they are whole."""
    places: list[int] = []
    end, unpack, add = len(data) - HEADER - FOOTER, _LENGTH.unpack_from, places.append
    while at <= end:
        add(at)
        at += unpack(data, at)[0] + HEADER + FOOTER
    if at > len(data):
        at = places.pop()
    found = np.array(places, np.int64)
    return found, np.diff(found, append=at) - (HEADER + FOOTER), at


def _damaged_at(data: NDArray[np.uint8], at: int) -> bool:
    """Whether a record begins here whose length cannot be trusted; not where too little is here to tell."""
    return at + HEADER <= len(data) and not bool(_sound(data[at : at + HEADER][None])[0])


def _next(data: NDArray[np.uint8], at: int) -> int:
    """The next place where a header is sound; -1 where there is none."""
    step = 2**16
    for first in range(at, len(data) - HEADER, step):
        windows = np.lib.stride_tricks.sliding_window_view(data[first : first + step + HEADER - 1], HEADER)
        found = np.flatnonzero(_sound(windows))
        if len(found):
            return first + int(found[0])
    return -1


def _sound(headers: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Of [records, HEADER] those whose length has the checksum that stands beside it."""
    told = np.ascontiguousarray(headers[:, 8:HEADER]).view("<u4")[:, 0]
    sound: NDArray[np.bool_] = masked(headers[:, :8]) == told
    return sound


def _undamaged(data: NDArray[np.uint8], starts: Places, lengths: Places) -> NDArray[np.bool_]:
    """Which records have the checksum that stands behind them; those of one length are summed together."""
    kept = np.zeros(len(starts), dtype=np.bool_)
    for length in np.unique(lengths).tolist():
        here = np.flatnonzero(lengths == length)
        for part in np.array_split(here, -(-len(here) * (length + FOOTER) // BLOCK) or 1):
            whole = gathered(data, starts[part], length + FOOTER)
            told = np.ascontiguousarray(whole[:, length:]).view("<u4")[:, 0]
            kept[part] = masked(whole[:, :length]) == told
    return kept


def gathered(data: NDArray[np.uint8], starts: Places, length: int) -> NDArray[np.uint8]:
    """[records, length]: so many bytes from each place."""
    return np.lib.stride_tricks.sliding_window_view(data, length)[starts]
