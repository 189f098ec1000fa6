"""Sealed parts: Parquet files that are complete or absent."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from recorder.schema import Column
from recorder.store.errors import StoreError, cannot_read
from recorder.store.files import put_in_place
from recorder.store.regular import regular_size

ROW_GROUP = 65_536
_PENDING = b"pending"
_MOVE = "restore it from a copy, or move it out of the directory to read the rest"


def write_part(path: Path, table: pa.Table, pending: NDArray[np.int64]) -> None:
    """Write one part under a temporary name, sync it, and put it in place."""
    temporary = path.with_name(f"_tmp-{path.name}")
    if len(pending):
        table = table.replace_schema_metadata({_PENDING: json.dumps(pending.tolist())})
    repeating = [field.name for field in table.schema if _is_text(field.type) and _repeats(table[field.name])]
    encodings = {field.name: _encoding(field.type) for field in table.schema if field.name not in repeating}
    try:
        with pa.OSFile(_name(temporary), "wb") as sink:
            pq.write_table(
                table,
                sink,
                row_group_size=ROW_GROUP,
                compression="zstd",
                use_dictionary=repeating,  # type: ignore[arg-type]  # the stubs lack the list of columns
                column_encoding=encodings,
                write_page_checksum=True,
            )
        put_in_place(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_part(path: Path, columns: Sequence[Column], wanted: Sequence[str] | None) -> tuple[pa.Table, list[int]]:
    """The wanted columns (None: all) of a part and the positions of its pending rows.

    Raises StoreError naming the part where it is damaged or not one of ours.
    """
    size = 0
    try:
        size = regular_size(path, path.parents[2])
        with pa.memory_map(_name(path)) as data, pq.ParquetFile(data, page_checksum_verification=True) as file:
            names = file.schema_arrow.names
            check_columns(path, names, columns)
            table = file.read(columns=None if wanted is None else [name for name in names if name in wanted])
            pending = _pending(file.schema_arrow.metadata or {}, table.num_rows)
    except FileNotFoundError:
        raise
    except PermissionError as error:
        raise cannot_read(path, error) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StoreError(path, f"is damaged or truncated, at {size} bytes ({error})", _MOVE) from None
    return table.replace_schema_metadata(None), pending


def check_columns(path: Path, names: Sequence[str], columns: Sequence[Column]) -> None:
    """Raises StoreError where a file has not the columns that every row of ours has, or two of one name."""
    missing = [column.name for column in columns if column.phase == "identity" and column.name not in names]
    if missing:
        what = f"lacks the columns {', '.join(missing)}, so the recorder did not write it"
        raise StoreError(path, what, "move it out of the directory")
    if len(set(names)) != len(names):
        raise StoreError(path, "holds two columns of one name, so the recorder did not write it", "move it away")


def _pending(metadata: dict[bytes, bytes], count: int) -> list[int]:
    try:
        positions = json.loads(metadata.get(_PENDING, b"[]"))
    except (ValueError, RecursionError):
        return []
    if not isinstance(positions, list):
        return []
    return [place for place in positions if isinstance(place, int) and 0 <= place < count]


def _name(path: Path) -> str:
    # As bytes, which may be any name; as a text it would have to be UTF-8.
    return os.fsencode(path)  # type: ignore[return-value]  # the stubs know only of texts


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind)


def _repeats(column: pa.ChunkedArray[Any]) -> bool:
    return pc.count_distinct(column, mode="only_valid").as_py() * 4 <= len(column)


def _encoding(kind: pa.DataType) -> str:
    if pa.types.is_floating(kind):
        return "BYTE_STREAM_SPLIT"
    if pa.types.is_integer(kind):
        return "DELTA_BINARY_PACKED"
    return "DELTA_BYTE_ARRAY" if _is_text(kind) else "PLAIN"
