"""Rows as an Arrow table, and tables of different columns as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recorder.schema import USER_PREFIX, Column
from recorder.store.layout import PENDING
from recorder.store.rows import Rows
from recorder.store.values import Scalar

_ARROW: dict[str, pa.DataType] = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "double": pa.float64(),
    "bool": pa.bool_(),
}

Array: TypeAlias = "pa.Array[Any]"
Chunks: TypeAlias = "pa.ChunkedArray[Any]"


def to_table(rows: Rows) -> tuple[pa.Table, NDArray[np.int64]]:
    """The rows as a table, columns in order and `user_*` after them, and the positions of pending rows.

    The rows must no longer grow: their memory is shared while the table is built.
    """
    layout = rows.layout
    blocks = np.frombuffer(rows.blocks, layout.dtype)
    places = {name: place for place, (name, _) in enumerate(layout.numbers)}
    columns: dict[str, Array] = {}
    for name, dtype in layout.columns:
        if dtype == "string":
            columns[name] = _texts(blocks[name], rows.texts[layout.texts.index(name)])
        else:
            columns[name] = _numbers(dtype, blocks[name], blocks["#valid"][:, places[name]])
    for name, values in rows.user.items():
        columns[USER_PREFIX + name] = _user([*values[: len(rows)], *[None] * (len(rows) - len(values))])
    return pa.table(columns), np.flatnonzero(blocks["#flags"] & PENDING)


def unify(tables: Sequence[pa.Table], columns: Sequence[Column]) -> pa.Table:
    """One table of all rows and columns: those of the schema first, in its order, the others as they first appear.

    A schema column takes its type in the schema. Others take the widest that holds all: int, then double, and
    text where text meets numbers. Raises pyarrow.ArrowException where values cannot be taken so.
    """
    wanted = {column.name: column.arrow for column in columns}
    found: dict[str, list[pa.DataType]] = {name: [] for name in wanted}
    for table in tables:
        for field in table.schema:
            found.setdefault(field.name, []).append(field.type)
    schema = pa.schema([(name, wanted.get(name) or _common(types)) for name, types in found.items() if types])
    return pa.concat_tables([_conform(table, schema) for table in tables]) if tables else schema.empty_table()


def _numbers(dtype: str, values: NDArray[np.generic], valid: NDArray[np.uint8]) -> Array:
    # From buffers: no copy beyond this one, and pyarrow does not look for pandas.
    data = np.packbits(values != 0, bitorder="little") if dtype == "bool" else np.ascontiguousarray(values)
    buffers: list[pa.Buffer | None] = [
        pa.py_buffer(np.packbits(valid != 0, bitorder="little").data),
        pa.py_buffer(data.data),
    ]
    return pa.Array.from_buffers(_ARROW[dtype], len(values), buffers)


def _texts(codes: NDArray[np.uint32], texts: list[str | None]) -> Array:
    index: pa.Array[pa.UInt32Scalar] = pa.array(np.ascontiguousarray(codes), pa.uint32())
    return pc.take(pa.array(texts, pa.string()), index)


def _user(values: list[Scalar]) -> Array:
    types = set(map(type, values)) - {type(None)}
    if not types:
        return pa.nulls(len(values))
    if str in types:
        return pa.array([value if value is None else _as_text(value) for value in values], pa.string())
    if types == {bool}:
        return pa.array(values, pa.bool_())
    if types <= {bool, int}:
        return pa.array([value if value is None else int(value) for value in values], pa.int64())
    return pa.array([value if value is None else float(value) for value in values], pa.float64())


def _as_text(value: bool | int | float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _common(types: Sequence[pa.DataType]) -> pa.DataType:
    distinct = list(dict.fromkeys(kind for kind in types if not pa.types.is_null(kind)))
    if len(distinct) <= 1:
        return distinct[0] if distinct else pa.float64()
    if all(pa.types.is_boolean(kind) or pa.types.is_integer(kind) for kind in distinct):
        return pa.int64()
    if all(pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in distinct):
        return pa.float64()
    return pa.string()


def _conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    if table.schema.equals(schema):
        return table
    arrays: list[Array | Chunks] = []
    for field in schema:
        if field.name not in table.column_names:
            arrays.append(pa.nulls(table.num_rows, field.type))
        elif table[field.name].type == field.type:
            arrays.append(table[field.name])
        else:
            arrays.append(_cast(table[field.name], field.type))
    return pa.table(arrays, schema=schema)


def _cast(column: Chunks, kind: pa.DataType) -> Chunks:
    if pa.types.is_boolean(column.type) and pa.types.is_floating(kind):
        column = column.cast(pa.int8())
    # Integers beyond 2**53 lose digits as doubles; a plot of them does not.
    return column.cast(kind, safe=not pa.types.is_floating(kind))
