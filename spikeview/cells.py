"""From Arrow columns to numpy arrays, one value a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recorder.schema import Column


def to_numpy(column: pa.ChunkedArray[Any]) -> NDArray[Any]:
    """Integers with 0 for null, booleans with False, other numbers as float64 with NaN, the rest as objects."""
    kind = column.type
    if column.null_count and (pa.types.is_boolean(kind) or pa.types.is_integer(kind)):
        column = column.fill_null(pa.scalar(False if pa.types.is_boolean(kind) else 0, kind))
    if pa.types.is_boolean(kind):
        return column.to_numpy().astype(np.bool_, copy=False)
    if pa.types.is_integer(kind):
        # What only 64 bits without a sign hold stays so.
        whole = np.uint64 if pa.types.is_uint64(kind) else np.int64
        return column.to_numpy().astype(whole, copy=False)
    if pa.types.is_floating(kind):
        return column.to_numpy().astype(np.float64, copy=False)
    objects = np.empty(len(column), dtype=object)
    objects[:] = column.to_pylist()
    return objects


def chosen(values: NDArray[Any], rows: NDArray[np.bool_]) -> NDArray[Any]:
    """The values at some rows; of all of them no copy is made."""
    return values if rows.all() else values[rows]


def all_null(rows: int, column: Column | None) -> NDArray[Any]:
    """A column that was not recorded at all."""
    if column is not None and column.is_text:
        return np.full(rows, None, dtype=object)
    if column is not None and column.dtype == "bool":
        return np.zeros(rows, dtype=np.bool_)
    return np.full(rows, np.nan)
