"""Run: the one immutable value that every format becomes, and the five things a cell of it can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recorder.schema import COLUMNS, Column, Mask

Floats = NDArray[np.float64]


class Kind(IntEnum):
    """What a cell is. The first four are values; the last two say why there is none."""

    FINITE = 0
    NAN = 1
    POS_INF = 2
    NEG_INF = 3
    NOT_APPLICABLE = 4
    NOT_RECORDED = 5


@dataclass(frozen=True, eq=False)
class Run:
    """Rows in the order they were recorded, with the manifest and the events beside them.

    `table` holds the columns of `recorder.schema.STEPS` that were recorded, and any further ones. A column
    absent from it was not recorded at all. `notes` says what a reader had to leave out; `rank` is the process
    whose rows these are. Positions (0 .. len-1) index the arrays; the column `row` holds the recorder's own row
    numbers.
    """

    path: str
    table: pa.Table
    manifest: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]] = ()
    layers: pa.Table | None = None
    notes: Sequence[str] = ()
    rank: int = 0
    _cache: dict[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    @property
    def name(self) -> str:
        """What people call the run: the last part of its path, the directory's own name where that is `.` or `..`."""
        name = _last(self.path)
        return _last(str(Path(self.path).resolve())) if name in ("", ".", "..") else name

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.table.column_names)

    @property
    def optimizers(self) -> list[str]:
        """Names in order of first appearance."""
        if "optimizer" not in self:
            return []
        return [text for text in self.table["optimizer"].unique().to_pylist() if text is not None]

    def of(self, optimizer: str) -> Run:
        """The rows of one optimizer."""
        if self.optimizers in ([], [optimizer]):
            return self
        chosen = self.table.filter(pc.equal(self.table["optimizer"], pa.scalar(optimizer)))
        return replace(self, table=chosen, _cache={})

    def values(self, name: str) -> NDArray[Any]:
        """One column as numpy: float64 with NaN for null, int64 with 0, bool with False, objects with None.

        Numbers of any kind come as float64 unless they are integers or booleans in the schema. Never read
        without `recorded` or `kind`: a NaN may be a value. A column that is absent is all null.
        """
        key = f"values:{name}"
        if key not in self._cache:
            self._cache[key] = self._read(name)
        return self._cache[key]  # type: ignore[no-any-return]

    def recorded(self, name: str) -> Mask:
        """Where the column is not null."""
        key = f"recorded:{name}"
        if key not in self._cache:
            if name not in self:
                mask = np.zeros(len(self), dtype=np.bool_)
            elif self.table[name].null_count == 0:
                mask = np.ones(len(self), dtype=np.bool_)
            else:
                mask = self.table[name].is_valid().to_numpy()
            mask.flags.writeable = False
            self._cache[key] = mask
        return self._cache[key]  # type: ignore[no-any-return]

    def equals(self, name: str, text: str) -> Mask:
        """Where a text column holds exactly this text."""
        if name not in self:
            return np.zeros(len(self), dtype=np.bool_)
        return pc.equal(self.table[name], pa.scalar(text)).fill_null(False).to_numpy()

    def kind(self, name: str) -> NDArray[np.uint8]:
        """The `Kind` of every cell of a column."""
        key = f"kind:{name}"
        if key not in self._cache:
            self._cache[key] = self._classify(name)
        return self._cache[key]  # type: ignore[no-any-return]

    def text(self, name: str, position: int) -> str | None:
        """One cell of a text column."""
        if name not in self:
            return None
        value = self.table[name][position].as_py()
        return None if value is None else str(value)

    @property
    def user_columns(self) -> list[str]:
        """Columns beyond the schema: the user's own, and those of a later or foreign writer."""
        return [name for name in self.table.column_names if name not in COLUMNS]

    def _read(self, name: str) -> NDArray[Any]:
        array = _to_numpy(self.table[name]) if name in self else _all_null(len(self), COLUMNS.get(name))
        array.flags.writeable = False
        return array

    def _classify(self, name: str) -> NDArray[np.uint8]:
        recorded = self.recorded(name)
        kinds = np.zeros(len(self), dtype=np.uint8)
        values = self.values(name)
        if values.dtype.kind == "f":
            kinds[np.isnan(values)] = Kind.NAN
            kinds[values == np.inf] = Kind.POS_INF
            kinds[values == -np.inf] = Kind.NEG_INF
        kinds[~recorded] = Kind.NOT_RECORDED
        column = COLUMNS.get(name)
        if column is not None and name in self:
            kinds[~recorded & ~column.applies(self, name)] = Kind.NOT_APPLICABLE
        kinds.flags.writeable = False
        return kinds


def _last(path: str) -> str:
    return path.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1]


def _all_null(rows: int, column: Column | None) -> NDArray[Any]:
    if column is not None and column.is_text:
        return np.full(rows, None, dtype=object)
    if column is not None and column.dtype == "bool":
        return np.zeros(rows, dtype=np.bool_)
    return np.full(rows, np.nan)


def _to_numpy(column: pa.ChunkedArray[Any]) -> NDArray[Any]:
    if pa.types.is_boolean(column.type):
        return column.fill_null(pa.scalar(False)).to_numpy().astype(np.bool_)
    if pa.types.is_integer(column.type):
        return column.fill_null(pa.scalar(0, column.type)).to_numpy().astype(np.int64)
    if pa.types.is_floating(column.type):
        return column.to_numpy().astype(np.float64, copy=column.null_count == 0)
    return np.array(column.to_pylist(), dtype=object)
