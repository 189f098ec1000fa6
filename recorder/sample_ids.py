"""Which samples a batch was made of, as the text of a batch id and back. Numbers only: no torch.

A text in brackets is a list of samples, in the order of the batch:

    [0-63]                            a range, both ends among them
    [0-252/4]                         every fourth one
    [8217,13,402-405]                 any mixture, up to 64 parts
    [512 of 17-999983: EQAA...]       more than that: how many, lowest and highest, and their distances from the lowest
                                      as little-endian integers of one width, in base64
    ["a.jpg","b.jpg"]                 names, and whatever else is no whole number from 0 on: JSON
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

# So many parts are read by people; of more, what they come to is written first.
READABLE = 64
# So many characters are shown as they are; of a longer list of numbers, what it comes to.
SHOWN = 40
# Shorter runs of numbers are no shorter as a range.
LEAST = 3
MOST = 2**24
_PART = re.compile(r"(\d{1,19})(?:-(\d{1,19})(?:/(\d{1,19}))?)?", re.ASCII)
_PACKED = re.compile(r"\[(\d{1,8}) of (\d{1,19})-(\d{1,19}): ([A-Za-z0-9+/]*=*)\]", re.ASCII)


class SampleIds:
    """The ids of the samples of one batch, in its order: numbers, names, or tuples of them.

    Its text is the batch id of a row: `recorder.transition(batch_id=ids)`.
    """

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"SampleIds({self.text!r})"

    def __iter__(self) -> Iterator[Any]:
        return iter(from_text(self.text) or ())

    def __len__(self) -> int:
        return len(from_text(self.text) or ())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SampleIds) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def as_text(ids: Iterable[Any]) -> str:
    """The ids of a batch's samples as text. What is neither a number, a text nor a tuple of them stays as its repr."""
    given = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    numbers = _numbers(given)
    if numbers is None:
        try:
            return json.dumps(given, separators=(",", ":"), ensure_ascii=False, default=_plain)
        except Exception:  # noqa: BLE001  # keys that JSON does not have, a list within itself, what has no text
            return json.dumps([_named(each) for each in given], ensure_ascii=False)
    packs = len(given) > READABLE and _parts(numbers) > max(READABLE, len(given) // 4)
    return _packed(numbers) if packs else _readable(numbers.tolist())


def batch_text(batch_id: Any) -> str:
    """A batch id as text; a list, or a tensor or array of one dimension, as a list of samples."""
    plain = batch_id.tolist() if hasattr(batch_id, "tolist") else batch_id
    return as_text(plain) if isinstance(plain, list | range) else str(plain)


def from_text(text: str) -> list[Any] | None:
    """The ids that `as_text` was given; None for a text that is no list of samples, such as a name of the user's."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    packed = _PACKED.fullmatch(text)
    if packed is not None:
        numbers = _unpacked(*packed.groups())
        return None if numbers is None else list(numbers.tolist())
    try:
        return _spread(text[1:-1])
    except ValueError:
        pass
    try:
        return [_tuple(each) for each in json.loads(text)]
    except (ValueError, RecursionError):
        return None


def place_of(text: str, sample: Any) -> int | None:
    """The first place of a sample in a batch of this id; None where it is not in it, or the text is no list."""
    packed = _PACKED.fullmatch(text) if isinstance(sample, int) else None
    if packed is not None:
        numbers = _unpacked(*packed.groups())
        there = [] if numbers is None else np.flatnonzero(numbers == sample).tolist()
        return int(there[0]) if there else None
    found = from_text(text) or ()
    return found.index(sample) if sample in found else None


def summary(text: str) -> str | None:
    """A packed list in words, `512 samples from 17 to 999983`, and a long one of numbers; None for any other text."""
    if len(text) <= SHOWN and _PACKED.fullmatch(text) is None:
        return None
    samples = from_text(text)
    if not samples or not all(type(each) is int for each in samples):
        return None
    return f"{len(samples)} samples from {min(samples)} to {max(samples)}"


def _numbers(ids: list[Any]) -> NDArray[np.int64] | None:
    """[ids]; None unless all are whole numbers from 0 on."""
    if not ids:
        return np.zeros(0, np.int64)
    try:
        numbers = np.array(ids)
    except Exception:  # noqa: BLE001  # tuples of unequal length, tensors on a device
        return None
    return numbers if numbers.ndim == 1 and numbers.dtype.kind == "i" and numbers.min() >= 0 else None


def _parts(numbers: NDArray[np.int64]) -> int:
    """About how many parts the readable form has."""
    apart = np.diff(numbers)
    begins = np.flatnonzero(np.diff(apart, prepend=apart[0] - 1))
    lengths = np.diff(begins, append=len(apart))
    long = (lengths + 1 >= LEAST) & (apart[begins] > 0)
    return int(long.sum() + lengths[~long].sum())


def _readable(ids: list[int]) -> str:
    parts: list[str] = []
    first = 0
    while first < len(ids):
        last, apart = first, ids[first + 1] - ids[first] if first + 1 < len(ids) else 0
        while apart > 0 and last + 1 < len(ids) and ids[last + 1] - ids[last] == apart:
            last += 1
        if last - first + 1 < LEAST:
            last = first
        ends = f"-{ids[last]}" if last > first else ""
        parts.append(f"{ids[first]}{ends}" + (f"/{apart}" if ends and apart > 1 else ""))
        first = last + 1
    return f"[{','.join(parts)}]"


def _spread(inner: str) -> list[int]:
    """The numbers of the readable form; raises ValueError where it is none."""
    found: list[int] = []
    for part in inner.split(",") if inner else ():
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ValueError(part)
        first, last, apart = (int(each or 0) for each in (match[1], match[2] or match[1], match[3] or 1))
        if last < first or apart == 0 or len(found) + (last - first) // apart >= MOST:
            raise ValueError(part)
        found += range(first, last + 1, apart)
    return found


def _packed(numbers: NDArray[np.int64]) -> str:
    low, high = int(numbers.min()), int(numbers.max())
    width = _width(low, high)
    data = (numbers - low).astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width]
    return f"[{len(numbers)} of {low}-{high}: {b64encode(data.tobytes()).decode()}]"


def _unpacked(count: str, low: str, high: str, data: str) -> NDArray[np.int64] | None:
    """[count]; None where the parts contradict each other."""
    lowest, highest = int(low), int(high)
    width = _width(lowest, highest)
    try:
        packed = np.frombuffer(b64decode(data, validate=True), np.uint8)
    except ValueError:
        return None
    if highest >= 2**63 or len(packed) != int(count) * width:
        return None
    wide = np.zeros((int(count), 8), np.uint8)
    wide[:, :width] = packed.reshape(-1, width)
    apart = wide.view("<u8")[:, 0]
    if not len(apart) or int(apart.max()) > highest - lowest:  # as a list of somebody else's may claim
        return None
    return apart.astype(np.int64) + lowest


def _width(low: int, high: int) -> int:
    """Bytes that hold any distance from the lowest."""
    return max(1, (max(high - low, 0).bit_length() + 7) // 8)


def _plain(value: Any) -> Any:
    """A numpy or torch scalar as Python's; the repr of what has no such form."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else _named(value)


def _named(value: Any) -> str:
    """The repr of a value, where it has one: Python writes no whole number of more than 4,300 digits."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  # the repr of a class of the user's may raise anything
        return f"<{type(value).__name__}>"


def _tuple(value: Any) -> Any:
    return tuple(_tuple(each) for each in value) if isinstance(value, list) else value
