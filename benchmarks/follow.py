"""What following a run costs: `python -m benchmarks.follow [--rows N]`.

Rows are recorded ten at a time, in three ways, and the run refreshed after each. Printed are medians, beside what one
reading of the whole run takes and beside those of a run of a hundredth of the length: what is new costs the same there.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from recorder.store import RunWriter, read_run
from recorder.store.table import ROLL_ROWS
from spikeview.importers import open_run
from spikeview.run import Run

COLUMNS = ("loss", "grad_norm", "clip_coef", "lr", "update_ratio", "update_cosine")
NEW = 10
TURNS = 30


def row_of(number: int, **columns: Any) -> dict[str, Any]:
    """A row as a recorder gives it."""
    values = dict.fromkeys(COLUMNS, 1.0 / (number + 1))
    clocks = {"attempted": True, "executed": True, "scheduled": 0, "optimizer": "optimizer"}
    return {"row": number, "step": number, "time_ns": number, **clocks, **values, **columns}


class Recording:
    """A live run and the ways in which it goes on."""

    def __init__(self, path: Path, rows: int) -> None:
        self.path, self.rows = path, 0
        self._writer = RunWriter.create(path, {})
        self.appended(rows)

    def appended(self, count: int = NEW) -> None:
        for number in range(self.rows, self.rows + count):
            self._writer.append(row_of(number))
        self.rows += count

    def credited(self) -> None:
        """The scheduler's step is credited to each row after it was written."""
        for number in range(self.rows, self.rows + NEW):
            self._writer.append(row_of(number))
            self._writer.amend(row_of(number, scheduled=1))
        self.rows += NEW

    def from_device(self) -> None:
        """Rows that wait for their values, which come with the next ones."""
        for number in range(self.rows, self.rows + NEW):
            self._writer.append(row_of(number, **dict.fromkeys(COLUMNS)), pending=True)
        for number in range(self.rows - NEW, self.rows):
            self._writer.amend(row_of(number))
        self.rows += NEW

    def close(self) -> None:
        self._writer.close()


def look(run: Run) -> None:
    """What six panels read."""
    for name in COLUMNS:
        run.values(name)
        run.kind(name)


def followed(recording: Recording, go_on: Callable[[], None]) -> Iterator[tuple[float, float]]:
    """Seconds of a refresh, and of the columns after it."""
    run = open_run(recording.path)
    look(run)
    go_on()
    look(run := run.refresh())  # the first copies the columns to where there is room behind them
    for _ in range(TURNS):
        go_on()
        begun = perf_counter()
        run = run.refresh()
        refreshed = perf_counter()
        look(run)
        yield refreshed - begun, perf_counter() - refreshed


def measured(path: Path, rows: int) -> dict[str, float]:
    """Seconds of each thing, on a run of so many rows."""
    recording = Recording(path, rows)
    begun = perf_counter()
    look(open_run(path))
    found = {"read afresh": perf_counter() - begun}
    ways = {"appended": recording.appended, "credited": recording.credited, "from a device": recording.from_device}
    for name, go_on in ways.items():
        refreshes, columns = zip(*followed(recording, go_on), strict=True)
        found[f"{name}: refresh"] = statistics.median(refreshes)
        found[f"{name}: six columns"] = statistics.median(columns)
    recording.close()
    shutil.rmtree(path)
    return found


def journal() -> None:
    """Print what a full journal takes to read, beside the part that is made of it."""
    with TemporaryDirectory() as folder:
        recording = Recording(Path(folder), ROLL_ROWS)
        seconds = [best_of(lambda: read_run(folder))]
        recording.close()
        seconds.append(best_of(lambda: read_run(folder)))
    live, sealed = (each * 1e3 for each in seconds)
    print(f"{ROLL_ROWS:,} rows: {live:.0f} ms from a journal, {sealed:.0f} ms from a part: {live / sealed:.1f} times")


def best_of(job: Callable[[], object], times: int = 5) -> float:
    """The least seconds that a job takes."""

    def once() -> float:
        begun = perf_counter()
        job()
        return perf_counter() - begun

    return min(once() for _ in range(times))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with TemporaryDirectory() as folder:
        short, long = (measured(Path(folder) / str(count), count) for count in (rows // 100, rows))
    print(f"{'ms, ten new rows':30}{rows // 100:>14,}{rows:>14,}{'ratio':>10}{'to afresh':>12}")
    for name, seconds in long.items():
        ratio, share = seconds / short[name], seconds / long["read afresh"]
        print(f"{name:30}{short[name] * 1e3:>14.2f}{seconds * 1e3:>14.2f}{ratio:>10.1f}{share:>12.4f}")
    journal()


if __name__ == "__main__":
    main()
