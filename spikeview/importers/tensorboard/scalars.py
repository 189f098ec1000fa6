"""The scalars in the events of a file.

Events of one tag differ only in time, step and value. So all events of a block that look alike are read at once, and
only one of each kind is taken apart field by field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spikeview.importers.tensorboard.event import Layout, layout_of, scalars_of
from spikeview.importers.tensorboard.records import Block, blocks, gathered

TIME_KEY, STEP_KEY = 0x09, 0x10
TIME_END, LONGEST_NUMBER = 9, 10
SMALLEST, LARGEST = 17, 512

Whole = NDArray[np.int64]
Bytes = NDArray[np.uint8]


class Columns(NamedTuple):
    """Scalars in the order of writing: which record each comes from, the number of its tag, step, seconds, value."""

    record: Whole
    tag: Whole
    step: Whole
    time: NDArray[np.float64]
    value: NDArray[np.float64]


@dataclass
class Scalars:
    """Every scalar of some files in the order of writing, with the tags by their numbers."""

    tags: dict[str, int] = field(default_factory=dict)
    parts: list[Columns] = field(default_factory=list)
    damaged: int = 0
    _layouts: dict[bytes, Layout | None] = field(default_factory=dict, repr=False)

    def read(self, path: Path, tell: Callable[[str], None]) -> None:
        """Add what a file holds."""
        for block in blocks(path, tell):
            self.damaged += block.damaged
            parts = list(self._of(block))
            together = _together(parts)
            order = np.argsort(together.record, kind="stable")
            self.parts.append(Columns._make(column[order] for column in together))

    def columns(self) -> Columns:
        """All of them together."""
        return _together(self.parts)

    def _of(self, block: Block) -> Iterator[Columns]:
        data = np.frombuffer(block.data, np.uint8)
        odd = [np.zeros(0, np.int64)]
        for length in np.unique(block.lengths).tolist():
            records = np.flatnonzero(block.lengths == length)
            if not SMALLEST <= length <= LARGEST:
                odd.append(records)
                continue
            for part, rest in self._alike(records, gathered(data, block.places[records], length)):
                odd.append(rest)
                yield part
        yield self._one_by_one(block, np.concatenate(odd))

    def _alike(self, records: Whole, events: Bytes) -> Iterator[tuple[Columns, Whole]]:
        """Scalars of events of one length, [events, length], and those of the events that must be taken apart."""
        steps, begins = _steps(events)
        timed = events[:, 0] == TIME_KEY
        for begin in np.unique(begins).tolist():
            rows = np.flatnonzero(timed & (begins == begin)) if begin + 6 < events.shape[1] else np.zeros(0, np.int64)
            for length in np.unique(events[rows, begin + 5]).tolist() if len(rows) else []:
                same = rows[events[rows, begin + 5] == length]
                for group in _groups(events[same, begin : begin + 6 + length]):
                    yield self._of_one_tag(records[same[group]], events[same[group]], steps[same[group]], begin, length)
        yield _NONE, records[~timed | (begins + 6 >= events.shape[1])]

    def _of_one_tag(
        self, records: Whole, events: Bytes, steps: Whole, begin: int, length: int
    ) -> tuple[Columns, Whole]:
        """Scalars of events with the same tag, whose summary begins at a place."""
        head = events[0, begin : begin + 6 + length].tobytes()
        if head not in self._layouts:
            self._layouts[head] = layout_of(events[0].tobytes(), begin)
        layout = self._layouts[head]
        if layout is None:
            return _NONE, records
        summaries, end = events[:, begin:], layout.at + 4
        if summaries.shape[1] != end + len(layout.after):
            return _NONE, records
        fits = (summaries[:, : layout.at] == np.frombuffer(layout.before, np.uint8)).all(1)
        fits &= (summaries[:, end:] == np.frombuffer(layout.after, np.uint8)).all(1)
        number = self.tags.setdefault(layout.tag, len(self.tags))
        times = np.ascontiguousarray(events[fits, 1:TIME_END]).view("<f8")[:, 0]
        values = np.ascontiguousarray(summaries[fits, layout.at : end]).view("<f4")[:, 0].astype(np.float64)
        tags = np.full(len(values), number, dtype=np.int64)
        return Columns(records[fits], tags, steps[fits], times, values), records[~fits]

    def _one_by_one(self, block: Block, records: Whole) -> Columns:
        found = []
        for record in records.tolist():
            at, length = int(block.places[record]), int(block.lengths[record])
            try:
                for scalar in scalars_of(block.data[at : at + length]):
                    number = self.tags.setdefault(scalar.tag, len(self.tags))
                    found.append((record, number, scalar.step, scalar.time, scalar.value))
            except ValueError:
                self.damaged += 1
        if not found:
            return _NONE
        record_, tag, step, time, value = (np.array(column) for column in zip(*found, strict=True))
        return Columns(record_, tag, step, time.astype(np.float64), value.astype(np.float64))


_NONE = Columns._make(np.zeros(0, kind) for kind in (np.int64, np.int64, np.int64, np.float64, np.float64))


def _together(parts: Sequence[Columns]) -> Columns:
    return Columns._make(np.concatenate(columns) for columns in zip(*parts, strict=True))


def _steps(events: Bytes) -> tuple[Whole, Whole]:
    """The step of each event, and where the next field begins. It comes second, and is left out where it is 0."""
    number = events[:, TIME_END + 1 : TIME_END + 1 + LONGEST_NUMBER]
    size = np.argmax(number < 0x80, axis=1) + 1
    shifts = 7 * np.arange(number.shape[1], dtype=np.uint64)
    within = np.arange(number.shape[1]) < size[:, None]
    digits = np.where(within, number & np.uint8(0x7F), np.uint8(0)).astype(np.uint64)
    told = events[:, TIME_END] == STEP_KEY
    steps = np.where(told, (digits << shifts).sum(axis=1, dtype=np.uint64).astype(np.int64), 0)
    return steps, np.where(told, TIME_END + 1 + size, TIME_END)


def _groups(heads: Bytes) -> list[Whole]:
    """Positions of the rows of [rows, length] that are alike, by a sum of them; who reads them compares the bytes."""
    weights = np.random.default_rng(0).integers(1, 2**63, heads.shape[1], dtype=np.uint64) | np.uint64(1)
    sums = (heads * weights).sum(axis=1, dtype=np.uint64)
    order = np.argsort(sums, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(sums[order])) + 1)
