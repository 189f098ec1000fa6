"""A journal read back: its rows up to the first that is not whole, or those that came since it was last read."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from recorder.store.errors import ReplacedError, StoreError
from recorder.store.further import Further, Texts
from recorder.store.journal import FRAME, MAGIC
from recorder.store.layout import Layout
from recorder.store.regular import regular_size
from recorder.store.values import Scalar, clean_text

TORN = "the last row was being written when the run ended"

LARGEST = 2**31


@dataclass(frozen=True)
class Reached:
    """How far a journal was read: the rows it held up to the byte `end`, and what the records after it build on.

    `texts` are those of each text column by their code, `names` those of the user's fields, as written and as read.
    `last` is the head of the last frame, at the byte `checked`: where another stands there, the journal is another.
    """

    layout: Layout
    end: int
    rows: int
    texts: Texts
    names: Mapping[str, str]
    checked: int
    last: bytes


@dataclass(frozen=True)
class Journal:
    """The rows that records leave behind, each position once and in order, and what was left out, if anything.

    `positions` are [rows], `blocks` [rows, bytes of a block], the lists of `user` [rows] each.
    """

    layout: Layout
    positions: NDArray[np.int64]
    blocks: NDArray[np.uint8]
    texts: Texts
    user: Mapping[str, Sequence[Scalar]]
    note: str | None
    reached: Reached

    def __len__(self) -> int:
        return len(self.positions)


def read_journal(path: Path, after: Reached | None = None) -> Journal | None:
    """The rows of a journal that come `after` an earlier reading (None: all); None where its head was not finished.

    A position that was read before comes again where its row was amended. Raises FileNotFoundError where the journal
    is gone (sealed meanwhile), ReplacedError where it is another than was read, StoreError where it is none of ours.
    """
    size = regular_size(path, path.parents[2])
    if size > LARGEST:
        raise StoreError(path, f"holds {size:,} bytes, more than any journal", "move it out of the directory")
    base = after.checked if after else 0
    with path.open("rb") as file:
        file.seek(base)
        data = file.read()
        after = after or _begun(path, data)
        if after is None:
            return None
        if not data.startswith(after.last, after.checked - base):
            raise ReplacedError(path)
        journal = _read(path, data, base, after)
        # What looks torn may be a row that is being written at this moment.
        more = file.read() if journal.note == TORN else b""
    return _read(path, data + more, base, after) if more else journal


def _begun(path: Path, data: bytes) -> Reached | None:
    """A journal of which only the head was read."""
    start = len(MAGIC)
    if data[:start] != MAGIC[: len(data)]:
        raise StoreError(path, "is not a journal that this version can read", "update spikeview or move the file away")
    end = next(_ends(data, start), None)
    if end is None:
        return None
    try:
        layout = _layout(data[start + FRAME.size : end])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise StoreError(path, f"has columns that cannot be read ({error})", "update spikeview") from None
    texts = [[None] for _ in layout.texts]
    return Reached(layout, end, 0, texts, {}, start, data[start : start + FRAME.size])


def _read(path: Path, data: bytes, base: int, after: Reached) -> Journal:
    """The rows of the records after `after`; `data` begins at the byte `base`."""
    layout, size = after.layout, after.layout.size
    bounds = np.array([after.end - base, *_ends(data, after.end - base, size)])
    lengths = np.diff(bounds) - FRAME.size
    count = len(lengths)
    window = sliding_window_view(np.frombuffer(data, np.uint8), size) if count else np.zeros((0, size), np.uint8)
    blocks = window[bounds[:count] + FRAME.size]
    columns = np.frombuffer(blocks, layout.dtype)
    positions = columns["#position"].astype(np.int64)
    held = np.maximum.accumulate(np.append(after.rows, positions + 1))
    count = _until(positions > held[:-1])
    further, count = _beyond(data, bounds, (lengths > size)[:count] | (columns["#defined"] > 0)[:count], columns, after)
    # Of several records of one position the last one counts.
    kept, at = np.unique(positions[:count][::-1], return_index=True)
    last = count - 1 - at
    _check_codes(path, columns[last], layout, further.texts)
    end = int(bounds[count])
    checked = int(bounds[count - 1]) if count else after.checked - base
    head = data[checked : checked + FRAME.size]
    texts, names = further.texts, further.names
    reached = Reached(layout, base + end, int(held[count]), texts, names, base + checked, head)
    note = _note(path, data, end, base + end)
    return Journal(layout, kept, blocks[last], texts, further.columns(last), note, reached)


def _beyond(
    data: bytes, bounds: NDArray[np.int64], longer: NDArray[np.bool_], columns: NDArray[np.void], after: Reached
) -> tuple[Further, int]:
    """What records hold beyond their blocks, where they are `longer`, and how many records can be read."""
    found = Further(after.texts, after.names)
    records = np.flatnonzero(longer)
    begins, ends = bounds[records] + FRAME.size + after.layout.size, bounds[records + 1]
    defines = columns["#defined"][records]
    for record, *where in zip(*(each.tolist() for each in (records, begins, ends, defines)), strict=True):
        try:
            found.read(data, record, *where)
        except (ValueError, IndexError, struct.error, RecursionError, TypeError):
            return found, record
    return found, len(longer)


def _ends(data: bytes, begin: int, least: int = 1) -> Iterator[int]:
    """Where each frame that is whole ends, from the one that begins here on, up to one of less than so many bytes."""
    unpack, head = FRAME.unpack_from, FRAME.size
    while begin + head <= len(data):
        length, checksum = unpack(data, begin)
        payload = data[begin + head : begin + head + length]
        # One without a payload is the zeros that a power cut leaves where bytes were not on the disk yet.
        if not len(payload) == length >= least or crc32(payload) != checksum:
            return
        begin += head + length
        yield begin


def _until(wrong: NDArray[np.bool_]) -> int:
    """How many come before the first that is wrong."""
    return int(np.argmax(wrong)) if wrong.any() else len(wrong)


def _layout(head: bytes) -> Layout:
    columns = json.loads(head)["columns"]
    for name, _ in columns:
        if not name or name != clean_text("column", name) or name.startswith("#"):
            raise ValueError(f"{name!r:.80} is no name of a column")
    return Layout(columns)


def _check_codes(path: Path, blocks: NDArray[np.void], layout: Layout, texts: Texts) -> None:
    for name, known in zip(layout.texts, texts, strict=True):
        if len(blocks) and int(blocks[name].max()) >= len(known):
            raise StoreError(path, f"is damaged: {name} refers to a text it does not hold", "move the file away")


def _note(path: Path, data: bytes, end: int, at: int) -> str | None:
    """Why the bytes after the last whole record are left out: from `end` on in `data`, from `at` on in the file."""
    left = len(data) - end
    if not left:
        return None
    torn = left < FRAME.size or FRAME.size + FRAME.unpack_from(data, end)[0] >= left or data.count(0, end) == left
    if torn and next(_ends(data, end), None) is None:
        return TORN
    return f"{path.name} is damaged at byte {at}: {left} bytes of rows after it are left out"
