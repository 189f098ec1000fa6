"""Rows that give the same columns are packed alike, at one go: nearly all rows of a run have one of a few shapes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from recorder.store.layout import STRUCT, Layout

Row = Mapping[str, Any]

MOST_SHAPES = 256


class Shape:
    """How rows are packed that give the same columns and leave the same ones null: a struct with holes for the nulls.

    `numbers` are the (name, dtype) and `texts` the places of the columns that hold something; the getters take their
    values out of a row. `recorded` is a row's byte for each number column.
    """

    def __init__(self, layout: Layout, row: Row) -> None:
        given = {name for name, value in row.items() if value is not None}
        nulls = [name for name in row if name not in given]
        self.count = len(row)
        self.numbers = tuple((name, dtype) for name, dtype in layout.numbers if name in given)
        self.texts = tuple(place for place, name in enumerate(layout.texts) if name in given)
        self.nulls = (None,) * len(nulls)
        self.get_nulls = _getter(nulls)
        self.get_numbers = _getter([name for name, _ in self.numbers])
        self.get_texts = _getter([layout.texts[place] for place in self.texts])
        self.recorded = bytes(name in given for name, _ in layout.numbers)
        codes = [(name, STRUCT[dtype]) for name, dtype in layout.numbers] + [(name, "I") for name in layout.texts]
        fields = (code if name in given else f"{struct.calcsize(f'<{code}')}x" for name, code in codes)
        self.pack = struct.Struct(f"<IBB{len(self.recorded)}s{''.join(fields)}").pack


class Shapes:
    """The shapes of a table's rows so far."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._known: dict[object, Shape] = {}

    def of(self, row: Row) -> Shape:
        """The shape of a row. Raises KeyError for a column the table does not have."""
        key = (*row, *(value is None for value in row.values()))
        shape = self._known.get(key)
        if shape is None:
            unknown = sorted(str(name) for name in row if name not in self.layout.names)
            if unknown:
                raise KeyError(f"no column named {', '.join(unknown)}")
            if len(self._known) >= MOST_SHAPES:
                self._known.clear()
            shape = self._known[key] = Shape(self.layout, row)
        return shape


def _getter(names: Sequence[str]) -> Callable[[Row], tuple[Any, ...]]:
    """A function that gives these columns of a row as a tuple, and raises KeyError where it lacks one."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda row: tuple(row[name] for name in names)
