"""How a row lies in memory and in a journal: one block of fixed size.

A block is: position (u32), flags (u8), how many texts it defines (u8), one byte a number column saying whether
it is recorded, the numbers, and one code (u32) a text column. Code 0 is null; the others number the texts of
a column in the order of their first appearance in the journal. Little-endian, packed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recorder.schema import Column

PENDING = 1  # flag: values that the device still holds are null in this record

# The codes of the types in a struct and in an array.
STRUCT = {"int64": "q", "int32": "i", "double": "d", "bool": "B"}
_NUMPY = {"int64": "<i8", "int32": "<i4", "double": "<f8", "bool": "u1"}


class Layout:
    """The blocks of a table with these (name, dtype) columns. Raises ValueError where there can be none."""

    def __init__(self, columns: Sequence[tuple[str, str]]) -> None:
        self.columns = tuple((name, dtype) for name, dtype in columns)
        self.numbers = tuple((name, dtype) for name, dtype in self.columns if dtype != "string")
        self.texts = tuple(name for name, dtype in self.columns if dtype == "string")
        unknown = {dtype for _, dtype in self.numbers} - set(STRUCT)
        if unknown:
            raise ValueError(f"unknown column type {min(unknown)!r}")
        self.names = frozenset(name for name, _ in self.columns)
        self.dtype = np.dtype(
            [
                ("#position", "<u4"),
                ("#flags", "u1"),
                ("#defined", "u1"),
                ("#valid", "u1", (len(self.numbers),)),
                *((name, _NUMPY[dtype]) for name, dtype in self.numbers),
                *((name, "<u4") for name in self.texts),
            ]
        )
        self.size = self.dtype.itemsize

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Layout:
        return cls([(column.name, column.dtype) for column in columns])
