"""A log read as a table, in pieces whose columns may differ: one piece saw numbers where another saw text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from recorder.store.tables import unify
from spikeview.importers.numbers import number

# A chunked array. Its stubs ask for the type of its values, which a log decides.
Chunks: TypeAlias = Any


@dataclass(frozen=True)
class Read:
    """A table of what could be read, under the names of the log, and how many lines could not."""

    table: pa.Table
    malformed: int = 0

    @classmethod
    def of(cls, tables: Sequence[pa.Table], malformed: int) -> Read:
        """The pieces as one. Objects become one column for each of their fields; lists are left out."""
        flat = [_flat(table) for table in tables]
        return cls(unify(flat, ()) if flat else pa.table({}), malformed)


def from_rows(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """A table of dicts, which need not have the same keys; a column of numbers and texts becomes one of texts."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: _array([row.get(name) for row in rows]) for name in names})


def as_numbers(column: Chunks) -> tuple[Chunks, int]:
    """A column as float64, and how many of its texts are no number."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        return column.cast(pa.float64(), safe=False), 0
    try:
        return pc.utf8_trim_whitespace(column).cast(pa.float64()), 0
    except pa.ArrowException:
        texts = column.to_pylist()
    values = [None if text is None or not text.strip() else number(text) for text in texts]
    bad = sum(
        value is None and text is not None and bool(text.strip()) for value, text in zip(values, texts, strict=True)
    )
    return pa.chunked_array([pa.array(values, pa.float64())]), bad


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type holds numbers as they are."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _array(values: list[Any]) -> Any:
    """Numbers as numbers, objects as objects, lists as nothing, and whatever else as text."""
    kinds = {type(value) for value in values} - {type(None)}
    try:
        if kinds <= {bool} or kinds <= {bool, int} or kinds == {dict}:
            return pa.array(values)
        if kinds <= {bool, int, float}:
            return pa.array([None if value is None else float(value) for value in values], pa.float64())
    except (OverflowError, pa.ArrowException):  # a number beyond all doubles, or objects that do not go together
        return pa.nulls(len(values))
    if kinds & {list, dict}:
        return pa.nulls(len(values))
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _flat(table: pa.Table) -> pa.Table:
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    kept: dict[str, Chunks] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_nested(column.type) or name in kept:
            continue
        kept[name] = column if is_number(column.type) or pa.types.is_null(column.type) else _text(column)
    return pa.table(kept) if kept else table.select([])


def _text(column: Chunks) -> Chunks:
    return column if pa.types.is_string(column.type) else column.cast(pa.string())
