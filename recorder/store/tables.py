"""Rows as an Arrow table, and tables of different columns as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recorder.schema import USER_PREFIX, Column
from recorder.store.layout import PENDING, Layout
from recorder.store.texts import Texts, text_array
from recorder.store.values import Scalar

_ARROW: dict[str, pa.DataType] = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "double": pa.float64(),
    "bool": pa.bool_(),
}

_SCALARS: dict[type, pa.DataType] = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}

PIECE = 4096
LARGE = 16_384
MOST_SMALL = 64

Array: TypeAlias = "pa.Array[Any]"
Chunks: TypeAlias = "pa.ChunkedArray[Any]"


class Packed(Protocol):
    """Rows as blocks one after the other: the texts of each text column by their code, the user's fields by name."""

    @property
    def layout(self) -> Layout: ...

    @property
    def blocks(self) -> bytes | bytearray | NDArray[np.uint8]: ...

    @property
    def texts(self) -> Sequence[Sequence[str | None] | Texts]: ...

    @property
    def user(self) -> Mapping[str, Sequence[Scalar]]: ...

    def __len__(self) -> int: ...


def to_table(rows: Packed, pause: Callable[[], None] = lambda: None) -> tuple[pa.Table, NDArray[np.int64]]:
    """The rows as a table, columns in order and `user_*` after them, and the positions of pending rows.

    The rows must no longer grow: their memory is shared while the table is built. `pause` is called wherever the
    interpreter was held for a while.
    """
    layout = rows.layout
    blocks = np.frombuffer(rows.blocks, layout.dtype)
    places = {name: place for place, (name, _) in enumerate(layout.numbers)}
    columns: dict[str, Array | Chunks] = {}
    for name, dtype in layout.columns:
        if dtype == "string":
            columns[name] = _texts(blocks[name], rows.texts[layout.texts.index(name)])
        else:
            columns[name] = _numbers(dtype, blocks[name], blocks["#valid"][:, places[name]])
    for name, values in rows.user.items():
        columns[USER_PREFIX + name] = _user(values, len(rows), pause)
    return pa.table(columns), np.flatnonzero(blocks["#flags"] & PENDING)


def unify(tables: Sequence[pa.Table], columns: Sequence[Column]) -> pa.Table:
    """One table of all rows and columns: those of the schema first, in its order, the others as they first appear.

    A schema column takes its type in the schema. Others take the widest that holds all: int, then double, and
    text where text meets numbers. Raises pyarrow.ArrowException where values cannot be taken so.
    """
    wanted = {column.name: column.arrow for column in columns}
    found: dict[str, list[Chunks]] = {name: [] for name in wanted}
    for table in tables:
        for name in table.column_names:
            found.setdefault(name, []).append(table[name])
    schema = pa.schema([(name, wanted.get(name) or _common(parts)) for name, parts in found.items() if parts])
    return pa.concat_tables([_conform(table, schema) for table in tables]) if tables else schema.empty_table()


def few_chunks(table: pa.Table) -> pa.Table:
    """The same table, where it ends in many small chunks as one does that grew by a few rows at a time: in one."""
    small = list(
        takewhile(lambda chunk: len(chunk) < LARGE, reversed(table.column(0).chunks if table.num_columns else []))
    )
    if len(small) <= MOST_SMALL:
        return table
    begin = table.num_rows - sum(map(len, small))
    return pa.concat_tables([table.slice(0, begin), table.slice(begin).combine_chunks()])


def _numbers(dtype: str, values: NDArray[np.generic], valid: NDArray[np.uint8 | np.bool_]) -> Array:
    # From buffers: no copy beyond this one, and pyarrow does not look for pandas.
    data = np.packbits(values != 0, bitorder="little") if dtype == "bool" else np.ascontiguousarray(values)
    buffers: list[pa.Buffer | None] = [
        pa.py_buffer(np.packbits(valid != 0, bitorder="little").data),
        pa.py_buffer(data.data),
    ]
    return pa.Array.from_buffers(_ARROW[dtype], len(values), buffers)


def _texts(codes: NDArray[np.uint32], texts: Sequence[str | None] | Texts) -> Array:
    index = pa.Array.from_buffers(pa.uint32(), len(codes), [None, pa.py_buffer(np.ascontiguousarray(codes).data)])
    return pc.take(texts.to_arrow() if isinstance(texts, Texts) else text_array(texts), index)


def _user(values: Sequence[Scalar], count: int, pause: Callable[[], None]) -> Chunks:
    """So many values as a column, null beyond those that are given. Of no type where all of them are null."""
    pieces: list[Array] = [pa.nulls(0)]
    for start in range(0, count, PIECE):
        piece = values[start : start + PIECE]
        pieces.append(_piece([*piece, *[None] * (min(PIECE, count - start) - len(piece))]))
        pause()
    if all(pa.types.is_null(piece.type) for piece in pieces):
        return pa.chunked_array(pieces)
    return unify([pa.table({"": piece}) for piece in pieces], ())[""]


def _piece(values: list[Scalar]) -> Array:
    types = set(map(type, values)) - {type(None)}
    if not types:
        return pa.nulls(len(values))
    if str in types:
        return text_array([value if value is None else _as_text(value) for value in values])
    dtype, kind = ("bool", np.bool_) if types == {bool} else ("int64", np.int64)
    dtype, kind = ("double", np.float64) if float in types else (dtype, kind)
    recorded = np.fromiter((value is not None for value in values), np.bool_, len(values))
    data: NDArray[Any] = np.fromiter((0 if value is None else value for value in values), kind, len(values))
    return _numbers(dtype, data, recorded)


def _as_text(value: bool | int | float | str) -> str:
    """As Arrow writes it where a column of numbers turns out to be one of texts in a later part."""
    # Its type is told, for where it has to be guessed pyarrow imports what dates need, whatever that does.
    return value if isinstance(value, str) else str(pa.scalar(value, _SCALARS[type(value)]).cast(pa.string()).as_py())


def _common(parts: Sequence[Chunks]) -> pa.DataType:
    """The type for all parts of a column; where a part holds nothing, its own type says nothing."""
    types = [part.type for part in parts if part.null_count < len(part)] or [part.type for part in parts]
    distinct = list(dict.fromkeys(kind for kind in types if not pa.types.is_null(kind)))
    if len(distinct) <= 1:
        return distinct[0] if distinct else pa.float64()
    if all(pa.types.is_boolean(kind) or pa.types.is_integer(kind) for kind in distinct):
        return pa.float64() if any(pa.types.is_uint64(kind) for kind in distinct) else pa.int64()
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
