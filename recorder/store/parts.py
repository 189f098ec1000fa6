"""Sealed parts: Parquet files that are complete or absent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from recorder.schema import Column
from recorder.store.errors import StoreError, cannot_read
from recorder.store.files import put_in_place
from recorder.store.plausible import check_columns, check_rows, plain_type, read_columns, read_texts, readable
from recorder.store.regular import regular_size
from recorder.store.said import Said

ROW_GROUP = 32_768  # less than a part, so that one row is found without decoding all of them
_AT_ONCE = 8  # groups of a column of texts
_FOOTERS = 256  # of so many parts it is kept: to parse one takes longer than to read a group of a column
_ANEW = "open the run again"
_MOVE = "restore it from a copy, or move it out of the directory to read the rest"

Mark: TypeAlias = tuple[int, int, int]


def write_part(path: Path, table: pa.Table, pending: NDArray[np.int64]) -> None:
    """Write one part under a temporary name, sync it, and put it in place."""
    temporary = path.with_name(f"_tmp-{path.name}")
    table = table.replace_schema_metadata(Said.of(table, pending).metadata())
    repeating = [field.name for field in table.schema if _is_text(field.type) and _repeats(table[field.name])]
    encodings = {field.name: _encoding(field.type) for field in table.schema if field.name not in repeating}
    try:
        with pa.OSFile(_name(temporary), "wb") as sink:
            pq.write_table(
                table,
                sink,
                row_group_size=ROW_GROUP,
                compression="zstd",
                compression_level=3,
                use_dictionary=repeating,  # type: ignore[arg-type]  # the stubs lack the list of columns
                column_encoding=encodings,
                write_page_checksum=True,
            )
        put_in_place(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@dataclass(frozen=True)
class Part:
    """What a part says of itself.

    `names` are the columns that can be read of it, `texts` those of them that hold texts; `groups` says how many rows
    each group of its rows holds, `said` what is true of all of them, `note` what has to be left out. `mark` tells it
    from another that is put in its place, of which it reads nothing: two of one path, mark and names are the same.
    """

    path: Path
    mark: Mark
    columns: tuple[Column, ...] = field(compare=False)
    names: tuple[str, ...]
    texts: frozenset[str] = field(compare=False)
    groups: tuple[int, ...] = field(compare=False)
    said: Said = field(compare=False)
    note: str | None = field(compare=False)

    @property
    def num_rows(self) -> int:
        return sum(self.groups)

    def read(self, names: Sequence[str], first: int = 0, last: int | None = None) -> pa.Table:
        """These columns of the rows from `first` to before `last`. Raises StoreError where the part is damaged."""
        last = self.num_rows if last is None else last
        groups, begin = self._groups(first, last)
        with self._read() as (data, file):
            table = _plain(read_columns(self.path, data, file, names, groups), self.columns)
            rows = sum(self.groups[at] for at in groups)
            if table.num_rows != rows:
                raise ValueError(f"{table.num_rows:,} rows of {rows:,} are there")
        return table.replace_schema_metadata(None).slice(first - begin, last - first)

    def distinct(self, name: str, first: int, last: int) -> list[Any]:
        """The texts of a column in these rows, each once in order, None where there is none. Raises as `read`."""
        groups, begin = self._groups(first, last)
        found: dict[Any, None] = {}
        with self._read() as (data, file):
            for at in range(0, len(groups), _AT_ONCE):
                some = groups[at : at + _AT_ONCE]
                column = next(read_texts(data, file, [name], some))[1]
                column = column.slice(max(0, first - begin), last - max(first, begin))
                found.update(dict.fromkeys(each.as_py() for each in pc.unique(column).cast(pa.string())))
                begin += sum(self.groups[each] for each in some)
        return list(found)

    def _groups(self, first: int, last: int) -> tuple[list[int], int]:
        """The groups that hold these rows, and where the first of them begins."""
        ends = [0, *accumulate(self.groups)]
        groups = [at for at, end in enumerate(ends[1:]) if end > first and ends[at] < last]
        return groups, ends[groups[0]] if groups else 0

    @contextmanager
    def _read(self) -> Iterator[tuple[Any, pq.ParquetFile]]:
        try:
            with _opened(self.path, self.mark) as (data, file, _):
                yield data, file
        except FileNotFoundError:
            raise StoreError(self.path, "is not there any more", _ANEW) from None


def look_at_part(path: Path, columns: Sequence[Column], wanted: Sequence[str] | None) -> Part:
    """What a part says of itself; of its columns only the wanted ones (None: all).

    Raises StoreError naming the part where it is damaged or not one of ours.
    """
    with _opened(path) as (_, file, mark):
        schema = file.schema_arrow  # made anew each time it is asked for
        names = schema.names
        check_columns(path, names, columns)
        kept, note = readable(path, schema, columns)
        kept = kept if wanted is None else [name for name in kept if name in wanted]
        check_rows(path, file.metadata.num_rows, len(kept))
        groups = tuple(file.metadata.row_group(at).num_rows for at in range(file.num_row_groups))
        if min(groups, default=0) < 0 or sum(groups) != file.metadata.num_rows:
            raise ValueError(f"its groups hold {sum(groups):,} rows of {file.metadata.num_rows:,}")
        said = Said.read(schema.metadata, sum(groups))
        texts = frozenset(name for name in kept if plain_type(schema.field(name).type) == pa.string())
        return Part(path, mark, tuple(columns), tuple(kept), texts, groups, said, note)


def read_part(
    path: Path, columns: Sequence[Column], wanted: Sequence[str] | None
) -> tuple[pa.Table, list[int], str | None]:
    """The wanted columns (None: all) of a part, the positions of its pending rows, and what had to be left out.

    Raises StoreError naming the part where it is damaged or not one of ours.
    """
    part = look_at_part(path, columns, wanted)
    return part.read(part.names), list(part.said.pending), part.note


def find_step(path: Path, columns: Sequence[Column], step: int) -> pa.Table | None:
    """The rows of a part that are of this step, None where it has none. Raises as `read_part`.

    Of a part that says that it cannot hold the step nothing more is read, and only the groups of rows that hold it.
    """
    with _opened(path) as (data, file, _):
        if not Said.read(file.metadata.metadata, file.metadata.num_rows).may_hold(step):
            return None
        names = file.schema_arrow.names
        check_columns(path, names, columns)
        check_rows(path, file.metadata.num_rows, len(names))
        steps = (file.read_row_group(group, ["step"]).column(0).to_numpy() for group in range(file.num_row_groups))
        groups = [group for group, found in enumerate(steps) if (found == step).any()]
        if not groups:
            return None
        kept, _ = readable(path, file.schema_arrow, columns)
        table = read_columns(path, data, file, kept, groups)
        found = table.filter(pc.equal(table["step"], pa.scalar(step, pa.int64())))
    return _plain(found, columns).replace_schema_metadata(None)


def mark_of(found: os.stat_result) -> Mark:
    """What tells a file from another that is put in its place."""
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def _opened(path: Path, known: Mark | None = None) -> Iterator[tuple[Any, pq.ParquetFile, Mark]]:
    """What a part is read from, the part, and its mark, which is the `known` one where there is one.

    What goes wrong with it is a StoreError that names it.
    """
    size = 0
    try:
        size = regular_size(path, path.parents[2])
        mark = mark_of(path.stat())
        if known is not None and mark[1:] != known[1:]:  # the inode of a file on another machine may change
            raise StoreError(path, "is another part than was there before", _ANEW)
        metadata = _footer(path, mark)
        with (
            pa.memory_map(_name(path)) as data,
            pq.ParquetFile(data, metadata=metadata, page_checksum_verification=True) as file,
        ):
            yield data, file, mark
    except FileNotFoundError:
        raise
    except PermissionError as error:
        raise cannot_read(path, error) from None
    except MemoryError as error:
        raise StoreError(path, f"needs more memory than there is here ({error})", _MOVE) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StoreError(path, f"is damaged or truncated, at {size} bytes ({error})", _MOVE) from None


@lru_cache(maxsize=_FOOTERS)
def _footer(path: Path, _mark: Mark) -> pq.FileMetaData:
    """What the end of a part says of its groups and columns; the mark tells it from another part in its place."""
    with pa.memory_map(_name(path)) as data:
        return pq.read_metadata(data)


def _plain(table: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """The table with its texts known to be text, and with further columns as plain numbers and texts."""
    known = {column.name for column in columns}
    for place, each in enumerate(table.schema):
        kind = plain_type(each.type)
        if each.name not in known and kind is not None and kind != each.type:
            table = table.set_column(place, each.name, table.column(place).cast(kind))
        if kind == pa.string():
            table.column(place).validate(full=True)
    return table


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
