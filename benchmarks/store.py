"""What a run directory costs to write, to keep and to read.

    python -m benchmarks.store [--rows 1000000] [--many 10000000] [--folder DIR]

Everything stands beside what it is to be compared with, within one run: committing a row beside the system call alone,
the worst gap beside that of the same loop with the system call alone, six columns beside pyarrow alone, and the same
rows beside other stores. `--rows 140000 --many 500000` is over in a minute.
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, perf_counter_ns

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.other_stores import Store, installed
from benchmarks.rows import Row, many_rows, recorded_rows
from recorder.schema import STEPS
from recorder.store import RunWriter, read_run, read_step
from recorder.store.folder import part_path
from recorder.store.layout import Layout
from recorder.store.parts import write_part
from recorder.store.table import ROLL_ROWS

SIX = ["loss", "grad_norm", "clip_coef", "update_cosine", "update_ratio", "lr"]
FRAME = bytes(Layout.of(STEPS).size + 8)
AFTER_A_ROLL = 30_000  # rows in which its part is written, at the least


def each_took(log: Callable[[Row], object], rows: Iterable[Row], count: int) -> NDArray[np.float64]:
    """Microseconds of each call."""
    took = np.zeros(count, np.int64)
    for number, row in enumerate(rows):
        begun = perf_counter_ns()
        log(row)
        took[number] = perf_counter_ns() - begun
    return took / 1e3


def writing(folder: Path, recorded: list[Row], count: int) -> None:
    """Commits and gaps, of the recorder and of a loop that only writes as many bytes."""
    fd = os.open(folder / "alone", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    alone = each_took(lambda _row: os.write(fd, FRAME), many_rows(recorded, count), count)
    os.close(fd)
    (folder / "alone").unlink()
    writer = RunWriter.create(folder / "run", {})
    took = each_took(writer.append, many_rows(recorded, count), count)
    writer.close()
    print(f"committing a row: median {np.median(took):.2f} us, of which the system call {np.median(alone):.2f} us")
    first, last = np.median(took[1000:11_000]), np.median(took[-10_000:])
    print(f"  the last 10,000 of {count:,} rows cost {last / first:.2f} times the first 10,000")
    rolls = range(ROLL_ROWS, count - AFTER_A_ROLL, ROLL_ROWS)
    worst = [took[roll : roll + AFTER_A_ROLL].max() / 1e3 for roll in rolls]
    same = [alone[roll : roll + AFTER_A_ROLL].max() / 1e3 for roll in rolls]
    if worst:
        print(f"worst gap while a part is rolled, over {len(worst)} rolls: {_spread(worst)}")
        print(f"  the same rows of the loop with the system call alone: {_spread(same)}")
    parts = sorted((folder / "run/steps/rank=0").glob("part-*"))
    print(f"{sum(part.stat().st_size for part in parts) / count:.1f} bytes a row, {len(parts)} parts")
    sizes = _column_sizes(parts[0])
    print("  " + ", ".join(f"{name} {size:.1f}" for name, size in sizes[:12]))


def reading(folder: Path, many: int) -> None:
    """Six columns of many rows against pyarrow, and one row by its step."""
    run = folder / "run"
    steps = run / "steps/rank=0"
    middle = pq.ParquetFile(max(steps.glob("part-*"))).metadata.num_rows // 2
    last = read_run(run, ["step"]).table.num_rows
    found = [_seconds(lambda step=step: read_step(run, step)) for step in range(middle, last, max(1, last // 20))]  # type: ignore[misc]
    print(f"one row by its step, of {last:,}: {_spread([seconds * 1e3 for seconds in found])}")
    make_many(run, folder / "many", many)
    there = folder / "many/steps/rank=0"
    ours, theirs = [], []
    for _ in range(7):
        theirs.append(_seconds(lambda: pq.read_table(there, columns=SIX, memory_map=True, partitioning=None)))
        ours.append(_seconds(lambda: read_run(folder / "many", SIX)))
    rows = read_run(folder / "many", ["loss"]).table.num_rows
    print(f"six columns of {rows:,} rows: {median(ours):.2f} s, pyarrow alone {median(theirs):.2f} s")
    print(f"  {median(ours) / median(theirs):.2f} times pyarrow ({min(ours) / min(theirs):.2f} at best)")


def make_many(source: Path, target: Path, count: int) -> None:
    """A run of so many rows, out of the first part of another one."""
    RunWriter.create(target, {}).close()
    table = pq.read_table(part_path(source / "steps/rank=0", 0), partitioning=None)
    for number in range(count // table.num_rows):
        numbers = pa.array(np.arange(table.num_rows) + number * table.num_rows)
        for name in ("row", "step"):
            table = table.set_column(table.schema.get_field_index(name), name, numbers)
        write_part(part_path(target / "steps/rank=0", number), table, np.zeros(0, np.int64))


def side_by_side(folder: Path, recorded: list[Row], stores: dict[str, Store]) -> None:
    """The same rows in each store: what a row costs and takes, and how many are left after a kill."""
    print(f"{'':<12}{'us a row':>10}{'bytes a row':>13}{'left after kill -9':>20}")
    for name, store in stores.items():
        place, killed = folder / name, folder / f"{name} killed"
        place.mkdir()
        killed.mkdir()
        log, close = store.begin(place, recorded[0])
        took = each_took(log, many_rows(recorded, store.rows), store.rows)
        close()
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
        child = os.fork()
        if child == 0:
            log, _ = store.begin(killed, recorded[0])
            each_took(log, many_rows(recorded, store.rows), store.rows)
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        left = store.count(killed) / store.rows
        print(f"{name:<12}{np.mean(took):>10.1f}{size / store.rows:>13.0f}{left:>20.1%}")


def _seconds(call: Callable[[], object]) -> float:
    begun = perf_counter()
    call()
    return perf_counter() - begun


def _spread(milliseconds: list[float]) -> str:
    return f"median {median(milliseconds):.2f} ms, {min(milliseconds):.2f} to {max(milliseconds):.2f}"


def _column_sizes(part: Path) -> list[tuple[str, float]]:
    """The columns with the bytes that they take a row, largest first."""
    metadata = pq.ParquetFile(part).metadata
    sizes: dict[str, int] = {}
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(place)
            sizes[chunk.path_in_schema] = sizes.get(chunk.path_in_schema, 0) + chunk.total_compressed_size
    return sorted(((name, size / metadata.num_rows) for name, size in sizes.items()), key=lambda found: -found[1])


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000, help="rows to write")
    options.add_argument("--many", type=int, default=10_000_000, help="rows to read six columns of")
    options.add_argument("--folder", type=Path, help="where to write; a temporary directory without")
    given = options.parse_args()
    with TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        recorded = recorded_rows(folder / "recorded")
        writing(folder, recorded, given.rows)
        reading(folder, given.many)
        side_by_side(folder, recorded, installed())


if __name__ == "__main__":
    main()
