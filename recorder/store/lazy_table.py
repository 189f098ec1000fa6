"""Rows of which a column is read from the parts when it is asked for, and held by whoever asked."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate, groupby, pairwise
from typing import Any, TypeAlias

import pyarrow as pa

from recorder.schema import COLUMNS, Column
from recorder.store.errors import StoreError, of_another_type
from recorder.store.parts import Part
from recorder.store.said import Said
from recorder.store.tables import few_chunks, unify

FEW = 1024
GROUPS = 4
MOST_DISTINCT = 1024
STRETCH = 65_536  # a part, as a rule: what is made of it is made in the processor's cache

Chunks: TypeAlias = "pa.ChunkedArray[Any]"


@dataclass(frozen=True)
class Rows:
    """The rows from `first` to before `last` of a part, or of a table in memory."""

    source: Part | pa.Table
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def said(self) -> Said:
        """What is known of all of them without a look at any."""
        if isinstance(self.source, Part) and len(self) == self.source.num_rows:
            return self.source.said
        return Said()

    @property
    def names(self) -> Sequence[str]:
        return self.source.names if isinstance(self.source, Part) else self.source.column_names

    def read(self, names: Iterable[str], few: bool = False) -> pa.Table:
        """Those of the columns that are there; null, of no type, where they are not. A `few` rows come with others."""
        wanted = list(names)
        have = [name for name in wanted if name in self.names]
        if not isinstance(self.source, Part):
            table = self.source.select(have).slice(self.first, len(self))
        elif few and have and len(self):
            table = _few(self.source, self.first, self.last).select(have)
        else:
            table = self.source.read(have, self.first, self.last) if have else pa.table({})
        lacking = {name: pa.nulls(len(self)) for name in wanted if name not in have}
        return pa.table({**{name: table[name] for name in have}, **lacking})

    def distinct(self, name: str) -> list[Any]:
        """The texts of a column, each once."""
        if isinstance(self.source, Part) and name in self.source.texts:
            return list(_distinct(self.source, name, self.first, self.last))
        column: Any = self.read([name])[name]
        if name in COLUMNS and COLUMNS[name].is_text:
            column = column.cast(pa.string())  # as it is read with other parts
        return list(column.unique().to_pylist())

    def pieces(self) -> Iterator[Rows]:
        """The groups of a part; of a table all at once."""
        if not isinstance(self.source, Part):
            yield self
            return
        ends = [0, *accumulate(self.source.groups)]
        for begin, end in pairwise(ends):
            if begin < self.last and end > self.first:
                yield Rows(self.source, max(begin, self.first), min(end, self.last))


@dataclass(frozen=True, eq=False)
class LazyTable:
    """What is asked of an Arrow table, of `rows` that mostly are on the disk.

    A column is read anew each time, but for the one that was asked for last, and those that were fetched and not asked
    for yet. `blamed` turns what is wrong with a part into what is raised. `others` are columns that are null in these
    rows, and are in those that they were cut out of.
    """

    columns: tuple[Column, ...]
    rows: tuple[Rows, ...] = ()
    blamed: Callable[[StoreError], Exception] = lambda error: error
    others: tuple[str, ...] = ()
    _held: dict[str, Chunks] = field(default_factory=dict, repr=False)
    _last: dict[str, Chunks] = field(default_factory=dict, repr=False)

    @property
    def num_rows(self) -> int:
        return self._starts[-1]

    @cached_property
    def column_names(self) -> list[str]:
        """Those of the schema first, in its order."""
        there = dict.fromkeys(name for rows in self.rows for name in rows.names) | dict.fromkeys(self.others)
        known = [column.name for column in self.columns if column.name in there]
        return [*known, *(name for name in there if name not in known)]

    def __getitem__(self, name: str) -> Chunks:
        """One column. Raises KeyError where there is none, and as `blamed` says where a part is damaged."""
        found = self._last.get(name)
        if found is None:
            found = self._held.pop(name, None)
            found = self.select([name])[name] if found is None else found
            self._last.clear()
            self._last[name] = found
        return found

    def fetch(self, names: Iterable[str]) -> None:
        """Read several columns at once, for who will ask for them next."""
        asked = {*names} - {*self._held}
        wanted = [name for name in self.column_names if name in asked]
        if wanted:
            table = self.select(wanted)
            self._held.update({name: table[name] for name in wanted})

    def select(self, names: Sequence[str]) -> pa.Table:
        """These columns, in memory."""
        there = self.column_names
        if absent := [name for name in names if name not in there]:
            raise KeyError(absent[0])
        try:
            tables = [rows.read(names, self.num_rows <= FEW) for rows in self.rows]
            tables = tables or [pa.table({name: pa.nulls(0) for name in names})]
            return unify(tables, [column for column in self.columns if column.name in names]).select(names)
        except StoreError as error:
            raise self.blamed(error) from error
        except pa.ArrowException as error:
            paths = [rows.source.path for rows in self.rows if isinstance(rows.source, Part)]
            raise self.blamed(of_another_type(paths[-1] if paths else "(in memory)", error)) from error

    def whole(self) -> pa.Table:
        """Every column."""
        return self.select(self.column_names)

    def distinct(self, name: str) -> list[Any]:
        """The texts of a column, each once in order, None where there is none; no row of it is spread out.

        Parts that say that they all have one text are believed, as long as it is the only one.
        """
        found: dict[Any, None] = {}
        try:
            for rows in self.rows:
                said = rows.said.texts.get(name)
                found.update(dict.fromkeys(rows.distinct(name) if said is None else [said]))
            if len(found) > 1:
                found = dict.fromkeys(text for rows in self.rows for text in rows.distinct(name))
        except StoreError as error:
            raise self.blamed(error) from error
        return list(found)

    def holds(self, name: str) -> bool:
        """Whether a column holds anything: it is read up to where it does."""
        pieces = (piece for rows in self.rows if name in rows.names for piece in rows.pieces())
        return any(self._of([piece]).select([name])[name].null_count < len(piece) for piece in pieces)

    def slice(self, offset: int = 0, length: int | None = None) -> LazyTable:
        """The rows from an offset on."""
        starts = self._starts
        last = self.num_rows if length is None else min(offset + length, self.num_rows)
        found = []
        for at in range(max(0, bisect_right(starts, offset) - 1), bisect_left(starts, last)):
            rows = self.rows[at]
            first, end = max(offset - starts[at], 0), min(last - starts[at], len(rows))
            if first < end:
                found.append(Rows(rows.source, rows.first + first, rows.first + end))
        return LazyTable(self.columns, tuple(found), self.blamed, tuple(self.column_names))

    @cached_property
    def _starts(self) -> list[int]:
        """The position of the first of each `rows`, and at last how many there are."""
        return [0, *accumulate(map(len, self.rows))]

    def followed(self, more: Iterable[Part | pa.Table | LazyTable]) -> LazyTable:
        """These rows and then more. Those that are in memory are held as one table."""
        found = list(self.rows)
        for each in more:
            if isinstance(each, LazyTable):
                found += each.rows
            else:
                found.append(Rows(each, 0, each.num_rows))
        joined: list[Rows] = []
        for on_disk, some in groupby(found, key=lambda rows: isinstance(rows.source, Part)):
            stretch = list(some)
            joined += stretch if on_disk else [_one(stretch, self.columns)]
        return self._of(joined)

    def _of(self, rows: Iterable[Rows]) -> LazyTable:
        return LazyTable(self.columns, tuple(rows), self.blamed)


def _one(rows: Sequence[Rows], columns: Sequence[Column]) -> Rows:
    """Rows in memory as one table; of an empty one the columns are kept where there is no other."""
    tables = [each.read(each.names) for each in rows if len(each)] or [each.read(each.names) for each in rows[:1]]
    table = few_chunks(unify(tables, columns))
    return Rows(table, 0, table.num_rows)


def _few(part: Part, first: int, last: int) -> pa.Table:
    """A few rows, all columns: those around them are asked for next, and come with them."""
    ends = [0, *accumulate(part.groups)]
    at = bisect_right(ends, first) - 1
    pieces = []
    while first < last:
        end = min(last, ends[at + 1])
        pieces.append(_group(part, at).slice(first - ends[at], end - first))
        first, at = end, at + 1
    return pa.concat_tables(pieces)


@lru_cache(maxsize=MOST_DISTINCT)  # the names of the optimizers are asked for again and again
def _distinct(part: Part, name: str, first: int, last: int) -> tuple[Any, ...]:
    return tuple(part.distinct(name, first, last))


@lru_cache(maxsize=GROUPS)
def _group(part: Part, at: int) -> pa.Table:
    first = sum(part.groups[:at])
    return part.read(part.names, first, first + part.groups[at])


Table: TypeAlias = pa.Table | LazyTable


def stretches(table: Table) -> Iterator[tuple[Said, Table]]:
    """The rows in stretches of no more than STRETCH and of one part, each with what is known of all of its rows."""
    if not isinstance(table, LazyTable):
        yield from ((Said(), table.slice(first, STRETCH)) for first in range(0, table.num_rows, STRETCH))
        return
    names = tuple(table.column_names)
    for rows in table.rows:
        piece = LazyTable(table.columns, (rows,), table.blamed, names)
        for first in range(0, len(rows), STRETCH):
            stretch = piece.slice(first, STRETCH)
            yield stretch.rows[0].said, stretch


def distinct_texts(table: Table, name: str) -> list[Any]:
    """The texts of a column, each once in order, None where there is none."""
    return table.distinct(name) if isinstance(table, LazyTable) else table[name].unique().to_pylist()


def in_memory(table: Table) -> pa.Table:
    """All rows and columns as an Arrow table."""
    return table.whole() if isinstance(table, LazyTable) else table
