"""Event files and folders of them as runs: one folder is one run, restarts and all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spikeview.format import plural
from spikeview.importers import huggingface, naming, tabular
from spikeview.importers.errors import RunError
from spikeview.importers.importer import Asked, Importer
from spikeview.importers.source import Source
from spikeview.importers.table import Read
from spikeview.importers.tensorboard.records import is_event_file
from spikeview.importers.tensorboard.scalars import Scalars
from spikeview.run import Run

MARK = "tfevents"
STEP, TIME = "step", "wall_time"


def declines(source: Source) -> str | None:
    """None for an event file, and for a folder with one in it or below."""
    if source.is_folder:
        return None if runs(source) else "no event files"
    with source.path.open("rb") as file:
        return None if is_event_file(file.read(64)) else "no event records"


def runs(source: Source) -> Sequence[str]:
    """The folders with event files, by their path below the one that was given; `.` is itself."""
    if not source.is_folder:
        return ()
    found = {
        path.parent.relative_to(source.path).as_posix() for path in source.path.rglob(f"*{MARK}*") if path.is_file()
    }
    return tuple(sorted(found))


def read(source: Source, asked: Asked) -> Run:
    """Every scalar of one folder or file. Raises RunError where there are none."""
    names = runs(source)
    folder = source.path / (asked.run or names[0]) if names else source.path
    files = sorted(path for path in folder.glob(f"*{MARK}*") if path.is_file()) if names else [source.path]
    scalars = Scalars()
    for path in files:
        scalars.read(path, asked.tell)
    if not scalars.tags:
        raise RunError(f"{folder}: holds no scalars, only other events; give the folder of a run that logged some")
    meanings = huggingface.MEANINGS if huggingface.is_its_log(list(scalars.tags)) else {}
    notes = [f"{plural(scalars.damaged, 'damaged record')} left out"] if scalars.damaged else []
    part = Read(_table(scalars, asked))
    return tabular.run_of(tabular.Log(folder, "TensorBoard events", part, meanings, notes=notes, is_told=True), asked)


def _table(scalars: Scalars, asked: Asked) -> pa.Table:
    """One row a step, one column a tag. A tag that comes twice for a step in a row makes a second one of it."""
    names = list(scalars.tags)
    _, tag, step, time, value = scalars.columns()
    place = _stretch(tag, step, _leading(names, asked, tag))
    order, rows = _rows(tag, step, place)
    firsts = np.flatnonzero(np.diff(rows, prepend=-1))
    columns = {STEP: pa.array(step[order][firsts]), TIME: pa.array(time[order][firsts])}
    value = value[order]
    for name, number in scalars.tags.items():
        here = tag[order] == number
        values, told = np.zeros(len(firsts)), np.zeros(len(firsts), dtype=np.bool_)
        values[rows[here]], told[rows[here]] = value[here], True
        columns[name if name not in columns else f"{name} (tag)"] = pa.array(values, mask=~told)
    return pa.table(columns)


def _leading(names: Sequence[str], asked: Asked, tag: NDArray[np.int64]) -> int:
    """The tag whose steps tell of a restart: the loss, else the one with the most scalars."""
    taken = naming.mapping(names, {column: name for column, name in asked.mapping.items() if name in names})
    leading = next((taken[column] for column in tabular.WATCHED if column in taken), None)
    return names.index(leading) if leading is not None else int(np.bincount(tag).argmax())


def _stretch(tag: NDArray[np.int64], step: NDArray[np.int64], leading: int) -> NDArray[np.int64]:
    """[scalars]: how often the run began again before each: where the steps of the leading tag go back."""
    here = np.flatnonzero(tag == leading)
    back = np.zeros(len(tag), dtype=np.int64)
    back[here[1:][np.diff(step[here]) < 0]] = 1
    stretches: NDArray[np.int64] = np.cumsum(back)
    return stretches


def _rows(
    tag: NDArray[np.int64], step: NDArray[np.int64], stretch: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """An order of the scalars by row, and the row of each in it."""
    order = np.lexsort([np.arange(len(tag)), tag, step, stretch])
    same = np.zeros(len(tag), dtype=np.bool_)
    same[1:] = np.logical_and.reduce([np.diff(key[order]) == 0 for key in (tag, step, stretch)])
    at = np.arange(len(tag))
    again = np.zeros(len(tag), dtype=np.int64)
    again[order] = at - np.maximum.accumulate(np.where(same, 0, at))
    order = np.lexsort([tag, again, step, stretch])
    new = np.logical_or.reduce([np.diff(key[order], prepend=-1) != 0 for key in (again, step, stretch)])
    new[:1] = True
    return order, np.cumsum(new) - 1


TENSORBOARD = Importer("TensorBoard events", declines, read, runs, among_others=True)
