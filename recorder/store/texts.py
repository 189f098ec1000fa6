"""Texts as UTF-8 one after the other, which is how Arrow holds them too."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


class Texts:
    """The texts of one column of a journal by code, from 1 on; code 0 is null.

    Not as Python's texts, for the interpreter holds still while it turns 65,536 of them into an Arrow array, or frees
    them, and the training with it.
    """

    def __init__(self) -> None:
        self._data = bytearray()
        self._ends = array("i", [0])

    def put(self, code: int, text: bytes) -> None:
        """Add the next text, or put another one in the place of the last. Raises OverflowError beyond 2 GiB."""
        if code < len(self._ends):
            del self._ends[code:]
        self._data[self._ends[-1] :] = text  # over what an interrupt may have left there
        self._ends.append(len(self._data))

    def to_arrow(self) -> pa.Array[Any]:
        """The texts, each at the place of its code. No more may be put while this is used: it shares their memory."""
        ends = np.frombuffer(self._ends, np.int32)
        return _from_buffers(self._data, ends, np.arange(len(ends)) > 0)


def text_array(texts: Sequence[str | None]) -> pa.Array[Any]:
    """Texts as Arrow holds them. Through buffers, for `pyarrow.array` looks for pandas first."""
    data = [b"" if text is None else text.encode() for text in texts]
    ends = np.cumsum(np.fromiter(map(len, data), np.int64, len(data)))
    return _from_buffers(b"".join(data), ends, np.fromiter((text is not None for text in texts), np.bool_, len(texts)))


def _from_buffers(data: bytes | bytearray, ends: NDArray[np.integer], recorded: NDArray[np.bool_]) -> pa.Array[Any]:
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends
    buffers = [np.packbits(recorded, bitorder="little").data, offsets.data, np.frombuffer(data, np.uint8).data]
    return pa.Array.from_buffers(pa.string(), len(ends), [pa.py_buffer(buffer) for buffer in buffers])
