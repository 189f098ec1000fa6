"""Run: the one immutable value that every format becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recorder.schema import COLUMNS, Mask
from recorder.store.lazy_table import STRETCH, LazyTable, Table, distinct_texts, in_memory
from recorder.store.rewinds import Rewind, abandoned
from recorder.store.tables import few_chunks
from spikeview.cancelling import checkpoint
from spikeview.captured import Capture
from spikeview.cells import all_null, classify, equal, not_null, to_numpy
from spikeview.gathered import Gathered, can_be_gathered, dtype_of, gather
from spikeview.growth import Grown, Reading

Floats = NDArray[np.float64]
Key = tuple[str, ...]
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Run:
    """Rows in the order they were recorded, with the manifest and the events beside them.

    `table` holds the columns of `recorder.schema.STEPS` that were recorded, and any further ones. A column
    absent from it was not recorded at all. `notes` says what a reader had to leave out; `rank` is the process
    whose rows these are. Positions (0 .. len-1) index the arrays; the column `row` holds the recorder's own row
    numbers. `rewinds` says where the run went back, `captures` which rows can be fed again. `source` gives the run as
    it is later, and is None where it cannot be followed.
    """

    path: str
    table: Table
    manifest: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]] = ()
    layers: pa.Table | None = None
    notes: Sequence[str] = ()
    rank: int = 0
    rewinds: Sequence[Rewind] = ()
    captures: Sequence[Capture] = ()
    source: Callable[[Run], Run] | None = field(default=None, repr=False)
    _cache: dict[Key, Any] = field(default_factory=dict, repr=False)
    _views: dict[str, Run] = field(default_factory=dict, repr=False)
    # Arrays and optimizers of an earlier reading, and of how many first rows they still hold.
    _before: dict[Key, tuple[Grown, int]] = field(default_factory=dict, repr=False)
    _named: tuple[Sequence[str], int] = field(default=((), 0), repr=False)
    _reading: Reading = field(default_factory=Reading, repr=False)

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

    @cached_property
    def optimizers(self) -> list[str]:
        """Names in order of first appearance."""
        known, rows = self._named
        named = distinct_texts(self.table.slice(rows), "optimizer") if "optimizer" in self else []
        return list(dict.fromkeys([*known, *(text for text in named if text is not None)]))

    def of(self, optimizer: str) -> Run:
        """The rows of one optimizer."""
        if self.optimizers in ([], [optimizer]):
            return self
        if optimizer not in self._views:
            self._views[optimizer] = self._view(optimizer, _rows_of(self.table, optimizer))
        return self._views[optimizer]

    def refresh(self) -> Run:
        """The run as it is now; itself where nothing is new, or where it cannot be followed.

        It costs in proportion to what is new. Of the rows that were there only the last one of each optimizer, and
        those that wait for their values from a device, may be others. Raises RunError where it cannot be read any more.
        """
        return self if self.source is None else self.source(self)

    def follows(self, before: Run) -> bool:
        """Whether it is that reading of a run or a later one, and not of another run that took its place."""
        return self._reading is before._reading or self._reading.follows(before._reading)

    def unchanged_since(self, before: Run) -> int:
        """How many of the first rows are as they were at an earlier reading of this run; 0 where it is none of it."""
        return min(len(self), len(before)) if self is before else self._reading.unchanged_since(before._reading)

    def succeeding(self, before: Run, unchanged: int) -> Run:
        """This run with the arrays of an earlier reading to build on: its first `unchanged` rows were the same."""
        known = {key: (array, min(rows, unchanged)) for key, (array, rows) in before._before.items()}
        known |= {key: (array, unchanged) for key, array in before._cache.items() if isinstance(array, Grown)}
        if self._names != before._names:  # why a cell is null is told by whether there is such a column
            known = {key: grown for key, grown in known.items() if key[0] not in ("kind", "made")}
        named, reading = (before.optimizers, unchanged), before._reading.followed(unchanged)
        run = replace(self, _cache={}, _views={}, _before=known, _named=named, _reading=reading)
        for optimizer, view in before._views.items():
            again = _rows_of(before.table.slice(unchanged), optimizer).num_rows
            tail = _rows_of(self.table.slice(unchanged), optimizer)
            if tail.schema.equals(in_memory(view.table).schema):
                kept = len(view) - again
                rows = few_chunks(pa.concat_tables([in_memory(view.table.slice(0, kept)), tail]))
                run._views[optimizer] = run._view(optimizer, rows).succeeding(view, kept)
        return run

    @cached_property
    def abandoned(self) -> Mask:
        """[rows]: the run went back to an earlier step or checkpoint, and left these behind."""
        if not self.rewinds:
            return np.zeros(len(self), dtype=np.bool_)
        numbers = np.where(self.recorded("row"), self.values("row"), np.arange(len(self)))
        return abandoned(self.rewinds, numbers)

    def fetch(self, names: Iterable[str]) -> None:
        """Read these columns, where that was not done yet: at once is quicker than one after the other."""
        if isinstance(self.table, LazyTable):
            wanted = [name for name in dict.fromkeys(names) if name in self and ("values", name) not in self._cache]
            known = {name: self._known(name) for name in wanted if self._is_gathered(name)}
            for first in set(known.values()):
                for column in gather(self.table, [name for name in known if known[name] == first], first):
                    self.keep(column)
            self.table.fetch(name for name in wanted if name not in known)

    def _known(self, name: str) -> int:
        """How many first rows of a column are known of an earlier reading, as the numbers that it holds."""
        before, rows = self._before.get(("values", name), (None, 0))
        return rows if before is not None and before.values.dtype == dtype_of(name) else 0

    def _is_gathered(self, name: str) -> bool:
        """Whether a column is put together of stretches: it has many rows to be read."""
        return can_be_gathered(name) and len(self) - self._known(name) > STRETCH

    def holds(self, name: str) -> bool:
        """Whether any value of a column was recorded; no more is read than it takes to tell."""
        if name not in self:
            return False
        table = self.table
        if isinstance(table, LazyTable):
            return self.once(f"holds {name}", lambda: table.holds(name))
        return table[name].null_count < len(self)

    def values(self, name: str) -> NDArray[Any]:
        """One column as numpy: float64 with NaN for null, int64 with 0, bool with False, objects with None.

        Numbers of any kind come as float64 unless they are integers or booleans in the schema. Never read
        without `recorded` or `kind`: a NaN may be a value. A column that is absent is all null.
        """
        if ("values", name) not in self._cache and self._is_gathered(name):
            self.fetch([name])
        found = self._array(("values", name), lambda run: run._read(name))
        if isinstance(self.table, LazyTable):
            self._told(name)  # while the column is at hand
        return found

    def keep(self, column: Gathered) -> None:
        """Take what was read of a column, so that it is not read again."""
        for key, tail in ((("values", column.name), column.values), (("recorded", column.name), column.recorded)):
            before, rows = self._before.get(key, (None, 0))
            if key in self._cache:
                continue
            if before is not None and before.values.dtype == tail.dtype and rows >= column.first:
                self._cache[key] = before.followed(rows, tail[rows - column.first :])
            elif column.first == 0:
                self._cache[key] = Grown.of(tail)

    def recorded(self, name: str) -> Mask:
        """Where the column is not null."""
        if isinstance(self.table, LazyTable) and name in COLUMNS and not COLUMNS[name].is_text:
            self.values(name)  # which are asked for next
        return self._told(name)

    def _told(self, name: str) -> Mask:
        return self._array(("recorded", name), lambda run: run._not_null(name))

    def equals(self, name: str, text: str) -> Mask:
        """Where a text column holds exactly this text."""
        return self._array(("equals", name, text), lambda run: run._holds(name, text))

    def kind(self, name: str) -> NDArray[np.uint8]:
        """The `Kind` of every cell of a column."""
        return self._array(("kind", name), lambda run: run._classify(name))

    def made(self, name: str, make: Callable[[Run], NDArray[Any]], back: int = 0) -> NDArray[Any]:
        """What `make` makes of each row and so many rows before it, by a name: kept with the run, and grown with it."""
        return self._array(("made", name), make, back)

    def once(self, name: str, find: Callable[[], Found]) -> Found:
        """What is found in the rows, by a name of its own: kept with the run, until it is told to forget it."""
        key = ("found", name)
        if key not in self._cache:
            self._cache[key] = find()
        found: Found = self._cache[key]
        return found

    def forget(self, name: str) -> None:
        """Let go of what was found."""
        self._cache.pop(("found", name), None)

    def text(self, name: str, position: int) -> str | None:
        """One cell of a text column."""
        if name not in self:
            return None
        value = self.table.slice(position, 1)[name][0].as_py()
        return None if value is None else str(value)

    @property
    def user_columns(self) -> list[str]:
        """Columns beyond the schema: the user's own, and those of a later or foreign writer."""
        return [name for name in self.table.column_names if name not in COLUMNS]

    def _array(self, key: Key, make: Callable[[Run], NDArray[Any]], back: int = 0) -> NDArray[Any]:
        """What `make` makes of each row and so many before it; of rows that were there before it is not made again."""
        found: Grown | None = self._cache.get(key)
        if found is None:
            checkpoint()
            found = self._cache[key] = self._grown(key, make, back)
        return found.values

    def _grown(self, key: Key, make: Callable[[Run], NDArray[Any]], back: int) -> Grown:
        before, rows = self._before.pop(key, (None, 0))
        if before is not None:
            first = max(rows - back, 0)
            tail = make(_LastRows(self.path, self.table.slice(first), self.manifest, whole=self, first=first))
            tail = tail[rows - first :]
            if tail.dtype == before.values.dtype:
                return before.followed(rows, tail)
        return Grown.of(make(self))

    def _view(self, optimizer: str, rows: pa.Table) -> Run:
        source = None if self.source is None else lambda view: self._newer(view, optimizer)
        view = replace(self, table=rows, source=source, _cache={}, _views={}, _before={}, _named=((), 0))
        return replace(view, _reading=Reading())

    def _newer(self, view: Run, optimizer: str) -> Run:
        newer = self.refresh()
        return view if newer is self else newer.of(optimizer)

    def _read(self, name: str) -> NDArray[Any]:
        return to_numpy(self.table[name]) if name in self else all_null(len(self), COLUMNS.get(name))

    def _not_null(self, name: str) -> Mask:
        return not_null(self.table[name]) if name in self else np.zeros(len(self), dtype=np.bool_)

    def _holds(self, name: str, text: str) -> Mask:
        return equal(self.table[name], text) if name in self else np.zeros(len(self), dtype=np.bool_)

    def _classify(self, name: str) -> NDArray[np.uint8]:
        column, recorded = COLUMNS.get(name), self.recorded(name)
        applies = None if column is None or name not in self else partial(column.applies, self, name)
        return classify(self.values(name), recorded, applies)


@dataclass(frozen=True, eq=False, kw_only=True)
class _LastRows(Run):
    """The last rows of a run, whose arrays are cut from its own."""

    whole: Run
    first: int

    def fetch(self, names: Iterable[str]) -> None:
        """The whole reads them."""

    def _array(self, key: Key, make: Callable[[Run], NDArray[Any]], back: int = 0) -> NDArray[Any]:
        return self.whole._array(key, make, back)[self.first :]


def row_by_row(make: Callable[[Run], Mask]) -> Callable[[Run], Mask]:
    """Of a function that says something of each row by itself: what it says is kept with the run, and grown with it."""

    @wraps(make)
    def made(run: Run) -> Mask:
        return run.made(f"{make.__module__}.{make.__name__}", make)

    return made


def _last(path: str) -> str:
    if "://" in path:  # of a URL, without the options after it
        path = path.partition("?")[0]
    return path.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1]


def _rows_of(lazy: Table, optimizer: str) -> pa.Table:
    table = in_memory(lazy)
    return table.filter(pc.equal(table["optimizer"], pa.scalar(optimizer, pa.string())))
