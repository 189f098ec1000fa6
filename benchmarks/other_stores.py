"""The same rows as people write them otherwise: JSON lines, CSV, SQLite, TensorBoard, trackio. Each where installed.

Each is told every column of a row, TensorBoard those that are numbers. A file is flushed and a database committed after
each row, for a row that is not is lost with the process; TensorBoard and trackio write when they see fit.
"""

from __future__ import annotations

import csv
import json
import os
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.rows import Row
from recorder.store import RunWriter, read_run


@dataclass(frozen=True)
class Store:
    """A way to keep rows: `begin` gives what logs a row and what closes; `count` tells how many rows can be read."""

    begin: Callable[[Path, Row], tuple[Callable[[Row], object], Callable[[], object]]]
    count: Callable[[Path], int]
    rows: int
    needs: str = "json"


def _recorder(folder: Path, _first: Row) -> tuple[Callable[[Row], object], Callable[[], object]]:
    writer = RunWriter.create(folder, {})
    return writer.append, writer.close


def _json_lines(folder: Path, _first: Row) -> tuple[Callable[[Row], object], Callable[[], object]]:
    file = (folder / "log.jsonl").open("w")

    def log(row: Row) -> None:
        file.write(json.dumps(row) + "\n")
        file.flush()

    return log, file.close


def _csv(folder: Path, first: Row) -> tuple[Callable[[Row], object], Callable[[], object]]:
    file = (folder / "log.csv").open("w", newline="")
    writer = csv.DictWriter(file, list(first))

    def log(row: Row) -> None:
        writer.writerow(row)
        file.flush()

    return log, file.close


def _sqlite(folder: Path, first: Row) -> tuple[Callable[[Row], object], Callable[[], object]]:
    base = sqlite3.connect(folder / "log.db")
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("PRAGMA synchronous=NORMAL")
    base.execute(f"CREATE TABLE log ({', '.join(first)})")
    insert = f"INSERT INTO log VALUES ({', '.join('?' * len(first))})"

    def log(row: Row) -> None:
        base.execute(insert, tuple(row.values()))
        base.commit()

    return log, base.close


def _tensorboard(folder: Path, _first: Row) -> tuple[Callable[[Row], object], Callable[[], object]]:
    writer = import_module("torch.utils.tensorboard").SummaryWriter(folder)

    def log(row: Row) -> None:
        for name, value in row.items():
            if isinstance(value, (int, float)):
                writer.add_scalar(name, value, row["step"])

    return log, writer.close


def _trackio(folder: Path, _first: Row) -> tuple[Callable[[Row], object], Callable[[], object]]:
    os.environ["TRACKIO_DIR"] = str(folder)
    trackio: Any = import_module("trackio")
    trackio.init(project="rows", name="rows")
    return trackio.log, trackio.finish


def _lines(pattern: str) -> Callable[[Path], int]:
    return lambda folder: sum(file.read_bytes().count(b"\n") for file in folder.glob(pattern))


def _selected(pattern: str, table: str) -> Callable[[Path], int]:
    def count(folder: Path) -> int:
        bases: Iterable[Path] = folder.glob(pattern)
        return sum(sqlite3.connect(base).execute(f"SELECT count(*) FROM {table}").fetchone()[0] for base in bases)

    return count


def _steps(folder: Path) -> int:
    loader: Any = import_module("tensorboard.backend.event_processing.event_file_loader")
    files = [loader.EventFileLoader(str(file)) for file in folder.glob("events*")]
    return len({event.step for file in files for event in file.Load() if event.HasField("summary")})


STORES = {
    "recorder": Store(_recorder, lambda folder: read_run(folder).table.num_rows, 20_000),
    "json lines": Store(_json_lines, _lines("*.jsonl"), 20_000),
    "csv": Store(_csv, _lines("*.csv"), 20_000),
    "sqlite": Store(_sqlite, _selected("*.db", "log"), 20_000),
    "tensorboard": Store(_tensorboard, _steps, 500, "tensorboard"),
    "trackio": Store(_trackio, _selected("rows.db", "metrics"), 2_000, "trackio"),
}


def installed() -> dict[str, Store]:
    """Those that can be imported here."""
    return {name: store for name, store in STORES.items() if find_spec(store.needs)}
