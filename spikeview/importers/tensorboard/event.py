"""One event: the messages `Event` and `Summary`, as far as scalars need them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from spikeview.importers.wire import BYTES, FIXED32, FIXED64, double, fields, single

SUMMARY_KEY, MESSAGE_KEY = 0x2A, 0x0A
DT_FLOAT, DT_DOUBLE = 1, 2


class Scalar(NamedTuple):
    """One scalar; `at` is where its four bytes begin, -1 where it has eight."""

    tag: str
    step: int
    time: float
    value: float
    at: int


class Layout(NamedTuple):
    """What the summary of a tag looks like: `before` its value, which begins `at` and takes four bytes, and `after`."""

    tag: str
    before: bytes
    at: int
    after: bytes


def scalars_of(event: bytes) -> Iterator[Scalar]:
    """The scalars of an event; images, histograms and texts are none. Raises ValueError where it is damaged."""
    time, step, begin, end = 0.0, 0, 0, 0
    for each in fields(event, 0, len(event)):
        if each.number == 1 and each.kind == FIXED64:
            time = double(event, each.start)
        elif each.number == 2:
            step = each.whole - 2**64 if each.whole >= 2**63 else each.whole
        elif each.number == 5 and each.kind == BYTES:
            begin, end = each.start, each.end
    for tag, value, at in _values(event, begin, end):
        yield Scalar(tag, step, time, value, at)


def layout_of(event: bytes, begin: int) -> Layout | None:
    """The layout of the summary that begins at a place of an event.

    None unless it is the event's last field and holds one float, and the lengths of summary, value and tag take a byte
    each.
    """
    summary = event[begin:]
    try:
        found = list(scalars_of(event))
    except ValueError:
        return None
    plain = (
        summary[0] == SUMMARY_KEY and summary[2] == summary[4] == MESSAGE_KEY and len(summary) == 2 + summary[1] < 0x80
    )
    if not plain or len(found) != 1 or found[0].at < 0:
        return None
    at = found[0].at - begin
    return Layout(found[0].tag, summary[:at], at, summary[at + 4 :])


def _values(data: bytes, at: int, end: int) -> Iterator[tuple[str, float, int]]:
    for each in fields(data, at, end):
        if each.number != 1 or each.kind != BYTES:
            continue
        tag = ""
        for part in fields(data, each.start, each.end):
            if part.number == 1 and part.kind == BYTES:
                tag = data[part.start : part.end].decode("utf-8", "replace")
            elif part.number == 2 and part.kind == FIXED32:
                yield tag, single(data, part.start), part.start
            elif part.number == 8 and part.kind == BYTES:
                yield from _of_tensor(tag, data, part.start, part.end)


def _of_tensor(tag: str, data: bytes, at: int, end: int) -> Iterator[tuple[str, float, int]]:
    """The value of a tensor without dimensions, in which newer writers wrap their scalars."""
    kind, dimensions, start, size = 0, 0, 0, 0
    for each in fields(data, at, end):
        if each.number == 1:
            kind = each.whole
        elif each.number == 2:
            dimensions = each.end - each.start
        elif each.number in (4, 5, 6):  # raw bytes, floats, doubles
            start, size = each.start, each.end - each.start
    if not dimensions and (kind, size) == (DT_FLOAT, 4):
        yield tag, single(data, start), start
    elif not dimensions and (kind, size) == (DT_DOUBLE, 8):
        yield tag, double(data, start), -1
