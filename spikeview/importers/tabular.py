"""From a table under a log's own names to a Run: columns taken, rows of one step joined, held-out rows set apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recorder.schema import COLUMNS
from spikeview.format import count, label, plural
from spikeview.importers import apart, joined
from spikeview.importers.assemble import assemble
from spikeview.importers.errors import UnnamedError
from spikeview.importers.importer import Asked
from spikeview.importers.naming import SKIPPED, held_out, listed, mapping, plain_name, user_name
from spikeview.importers.table import Chunks, Read, as_numbers, is_number
from spikeview.meaning import Meaning
from spikeview.run import Run

Columns: TypeAlias = "dict[str, Chunks]"

WATCHED = ("loss", "grad_norm", "update_ratio", "update_cosine", "executed")
TIMES = ("timestamp", "wall_time", "time", "created_at")
A_DATE = 1e8
NO_LOSS = "no column is named like a loss or a gradient norm"


@dataclass(frozen=True)
class Log:
    """A log that was read as a table.

    `meanings` says what the format's own columns hold, by their names in a run; where one has a name, that is the
    column. `events` and `notes` are the importer's own. `is_told`: the format alone says that this is a training log,
    whatever its columns are called.
    """

    path: Path | str
    name: str
    read: Read
    meanings: Mapping[str, Meaning] = field(default_factory=dict)
    events: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = ()
    is_told: bool = False


def run_of(log: Log, asked: Asked) -> Run:
    """The run in a log. Other columns than the format's own are guessed by their names, or taken as asked.

    Raises RunError where no column is one that is watched, unless the format told enough.
    """
    names = log.read.table.column_names
    own = {column: each.name for column, each in log.meanings.items() if each.name in names}
    taken = mapping(names, own | dict(asked.mapping))
    unwatched = not (taken.keys() & set(WATCHED) or _skipped(names))
    if unwatched and not log.is_told:
        told = f"{log.path}: {NO_LOSS}; name one with --map loss=NAME: there are {listed(names)}"
        raise UnnamedError(told, names)
    table, held = apart.by_split(log.read.table)
    columns, notes = _columns(table, taken)
    columns |= _clocks(table)
    if "step" in columns and apart.restarts_with_epochs(columns["step"], _epochs(table)):
        columns[user_name(taken.pop("step"))] = columns.pop("step")
        notes.append("the steps begin anew with every epoch: rows are counted instead")
    columns = joined.by_step(columns)
    columns, others = apart.without_values(columns)
    if set(taken) - set(own) - set(asked.mapping) - {"step"}:
        notes.insert(0, "columns are guessed from their names: --map COLUMN=NAME takes others")
    if unwatched:
        notes.append(f"{NO_LOSS}: name one with --map loss=NAME")
    elif "loss" not in taken and not log.meanings:
        untaken = [name for name in names if name not in taken.values()]
        notes.append(f"no column is named like a loss: name one with --map loss=NAME: there are {listed(untaken)}")
    if log.read.malformed:
        notes.append(f"{plural(log.read.malformed, 'malformed line')} left out")
    said = {column: replace(log.meanings.get(column, Meaning("")), name=name) for column, name in taken.items()}
    return assemble(log.path, log.name, columns, said, [*log.events, *held, *others], [*notes, *log.notes])


def _columns(table: pa.Table, taken: Mapping[str, str]) -> tuple[Columns, list[str]]:
    """The columns of a run and all further ones as `user_*`, and what was no number in the former."""
    columns: Columns = {}
    notes = []
    for column, name in list(taken.items()):
        if COLUMNS[column].is_text:
            columns[column] = table[name] if not is_number(table[name].type) else table[name].cast(pa.string())
            continue
        if COLUMNS[column].dtype in ("int64", "int32") and pa.types.is_integer(table[name].type):
            columns[column] = table[name]
            continue
        values, bad = as_numbers(table[name])
        if bad:
            cells = "1 cell holds" if bad == 1 else f"{count(bad)} cells hold"
            notes.append(f"{cells} no number ({label(column)}) and counts as not recorded")
        columns[column] = _whole(values) if COLUMNS[column].dtype in ("int64", "int32") else values
    clock = next((name for name in table.column_names if _tells_time(table, name)), None)
    if clock is not None and "time_ns" not in columns:
        nanoseconds = pc.multiply(table[clock].cast(pa.float64()), pa.scalar(1e9))
        columns["time_ns"] = pc.cast(nanoseconds, pa.int64(), safe=False)
    rest = [name for name in table.column_names if name not in (clock, *taken.values())]
    return columns | {user_name(name): table[name] for name in rest}, notes


def _whole(values: Chunks) -> Chunks:
    """Whole numbers; what is none is null."""
    array = values.to_numpy()
    with np.errstate(invalid="ignore"):
        sound = np.isfinite(array) & (np.abs(array) < 2**62) & (np.floor(array) == array)
    whole = np.where(sound, array, 0).astype(np.int64)
    return pa.chunked_array([pa.array(whole, mask=~sound)])


def _tells_time(table: pa.Table, name: str) -> bool:
    """Whether a column holds seconds since the epoch."""
    if plain_name(name) not in TIMES or not is_number(table[name].type):
        return False
    first = pc.min(table[name]).as_py()
    return first is not None and first > A_DATE


def _skipped(names: Sequence[str]) -> str | None:
    return next((name for name in names if plain_name(name) in SKIPPED and not held_out(name)), None)


def _clocks(table: pa.Table) -> Columns:
    """Attempts and executions where the log marks its skips, row by row."""
    name = _skipped(table.column_names)
    if name is None:
        return {}
    values = as_numbers(table[name])[0]
    if not set(pc.unique(values).to_pylist()) <= {0.0, 1.0, None}:
        return {}
    attempted = pc.if_else(pc.is_valid(values), pa.scalar(True), pa.scalar(None, pa.bool_()))
    return {"attempted": attempted, "executed": pc.equal(values, pa.scalar(0.0))}


def _epochs(table: pa.Table) -> Chunks | None:
    name = next((name for name in table.column_names if plain_name(name) in ("epoch", "train_epoch")), None)
    return None if name is None else as_numbers(table[name])[0]
