"""What of a part can be read, and in how much memory: a file of a kilobyte can be made to fill any."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recorder.schema import Column
from recorder.store.errors import StoreError

MOST_ROWS = 2**24  # a part is rolled at 65,536 rows; pending ones and those of one transition may make it longer
MOST_BYTES = 2**31  # 65,536 rows of a thousand fields of the user's are a quarter of that

_MOVE = "move it out of the directory to read the rest"
_NAMED = 3


def check_columns(path: Path, names: Sequence[str], columns: Sequence[Column]) -> None:
    """Raises StoreError where a file has not the columns that every row of ours has, or two of one name."""
    missing = [column.name for column in columns if column.phase == "identity" and column.name not in names]
    if missing:
        what = f"lacks the columns {', '.join(missing)}, so the recorder did not write it"
        raise StoreError(path, what, "move it out of the directory")
    if len(set(names)) != len(names):
        raise StoreError(path, "holds two columns of one name, so the recorder did not write it", "move it away")


@lru_cache(maxsize=64)
def plain_type(kind: pa.DataType) -> pa.DataType | None:
    """The type of number or text that a column is read as; None for one that holds neither."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return kind if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind) else None


def readable(path: Path, schema: pa.Schema, columns: Sequence[Column]) -> tuple[list[str], str | None]:
    """The columns that hold numbers or text, and a note on the others.

    Raises StoreError where a column of ours is among the others.
    """
    known = {column.name for column in columns}
    odd = [field for field in schema if plain_type(field.type) is None]
    for field in odd:
        if field.name in known:
            what = f"is damaged: the column {field.name} is of another type ({field.type!s:.80}) than is ever written"
            raise StoreError(path, what, _MOVE)
    left_out = [field.name for field in odd]
    return [name for name in schema.names if name not in left_out], _note(left_out)


def check_rows(path: Path, rows: int, columns: int) -> None:
    """Raises StoreError where so many rows of so many columns are more than a part ever holds."""
    if not 0 <= rows <= MOST_ROWS:
        raise StoreError(path, f"is damaged: it is said to hold {rows:,} rows", _MOVE)
    _check_bytes(path, 8 * rows * columns)


def read_columns(
    path: Path, data: Any, file: pq.ParquetFile, names: Sequence[str], groups: list[int] | None = None
) -> pa.Table:
    """These columns of a part, and of these groups of its rows (None: all); `data` is what `file` reads from.

    Texts are read as dictionaries first: in one a text of megabytes that stands in every row is held once. Only where
    all of them fit are they spread out. What a file says of its sizes is not asked for: it may lie, and pyarrow ends
    the process where a chunk contradicts itself. Raises StoreError where they do not fit, and what pyarrow raises.
    """
    schema = file.schema_arrow
    texts = [name for name in names if plain_type(schema.field(name).type) == pa.string()]
    numbers = [name for name in names if name not in texts]
    groups = [*range(file.metadata.num_row_groups)] if groups is None else groups
    found = file.read_row_groups(groups, columns=numbers)
    if not texts:
        return found.select(numbers)
    columns: dict[str, Any] = {name: found[name] for name in numbers}
    size = 0
    for name, column in read_texts(data, file, texts, groups):
        size += _bytes(column)
        _check_bytes(path, size)
        columns[name] = column.cast(pa.string())
    return pa.table({name: columns[name] for name in names})


def read_texts(data: Any, file: pq.ParquetFile, names: Sequence[str], groups: list[int]) -> Iterator[tuple[str, Any]]:
    """These columns with their names, as dictionaries where they are packed so. Raises what pyarrow raises."""
    with pq.ParquetFile(
        data, metadata=file.metadata, read_dictionary=list(names), page_checksum_verification=True
    ) as repeating:
        for name in names:
            try:
                yield name, repeating.read_row_groups(groups, columns=[name])[name]
            except OSError:  # it is packed in another way, or damaged
                yield name, file.read_row_groups(groups, columns=[name])[name]


def _check_bytes(path: Path, size: int) -> None:
    if size > MOST_BYTES:
        raise StoreError(path, f"would take {size / 1e9:,.1f} GB of memory", _MOVE)


def _bytes(texts: Any) -> int:
    """How many bytes the texts of a column are, each row by itself."""
    if not pa.types.is_dictionary(texts.type):
        return int(texts.nbytes)
    lengths = (pc.take(pc.binary_length(chunk.dictionary), chunk.indices) for chunk in texts.chunks)
    return sum(int(pc.sum(each.cast(pa.int64())).as_py() or 0) for each in lengths)


def _note(left_out: Sequence[str]) -> str | None:
    if not left_out:
        return None
    names = ", ".join(f"{name!r:.60}" for name in left_out[:_NAMED])
    more = f" and {len(left_out) - _NAMED} more" if len(left_out) > _NAMED else ""
    return f"columns that hold neither numbers nor text are left out: {names}{more}"
