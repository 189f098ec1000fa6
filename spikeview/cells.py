"""The cells of a column: what each of them is, and its value in numpy."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recorder.schema import Column, Mask


class Kind(IntEnum):
    """What a cell is. The first four are values; the last two say why there is none."""

    FINITE = 0
    NAN = 1
    POS_INF = 2
    NEG_INF = 3
    NOT_APPLICABLE = 4
    NOT_RECORDED = 5


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


def compact(cells: NDArray[Any]) -> NDArray[Any]:
    """An array that was spread out over its rows without memory, as the one value it is; any other as it is."""
    return cells[:1] if cells.strides == (0,) else cells


def not_null(column: pa.ChunkedArray[Any]) -> Mask:
    """[rows]: whether there is a value."""
    if column.null_count == 0:
        return np.broadcast_to(np.True_, len(column))  # takes no memory
    return column.is_valid().to_numpy()


def equal(column: pa.ChunkedArray[Any], text: str) -> Mask:
    """[rows]: whether a text column holds exactly this text."""
    # Its type is told: where it has to be guessed pyarrow imports what dates need.
    return pc.equal(column, pa.scalar(text, pa.string())).fill_null(False).to_numpy()


def classify(values: NDArray[Any], recorded: Mask, applies: Callable[[], Mask] | None) -> NDArray[np.uint8]:
    """[rows]: the `Kind` of each cell.

    Where the column `applies` is asked only if a cell is null; None stands for everywhere.
    """
    finite = values.dtype.kind != "f" or bool(np.isfinite(values).all())
    if finite and compact(recorded).all():
        return np.broadcast_to(np.uint8(Kind.FINITE), len(values))  # takes no memory
    kinds = np.zeros(len(values), dtype=np.uint8)
    if not finite:
        odd = np.flatnonzero(~np.isfinite(values))
        kinds[odd] = np.where(np.isnan(values[odd]), Kind.NAN, np.where(values[odd] > 0, Kind.POS_INF, Kind.NEG_INF))
    null = np.flatnonzero(~recorded)
    kinds[null] = Kind.NOT_RECORDED
    if applies is not None and len(null):
        kinds[null[~applies()[null]]] = Kind.NOT_APPLICABLE
    return kinds
