"""What a diagnosis of a followed run costs: `python -m benchmarks.following [--rows N ...]`.

A run of so many rows is diagnosed, and again after each 1,000 rows more. Printed are CPU seconds: the median of the
later diagnoses, each going on from the one before it, beside a diagnosis of all rows, whose columns are read already.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from benchmarks.long_run import write_long_run
from spikeview.importers import open_run
from spikeview.rules.diagnosis import diagnose
from spikeview.run import Run

NEW = 1_000
TURNS = 7


def measured(rows: int) -> tuple[float, float]:
    """CPU seconds of the diagnosis of all rows, and of one after NEW more."""
    with TemporaryDirectory() as folder:
        table = open_run(write_long_run(Path(folder), rows)).table
    length, seconds = rows - TURNS * NEW, []
    run = Run("followed", table.slice(0, length), {})
    for name in table.column_names:
        run.kind(name)
    begun = process_time()
    found = diagnose(run)
    whole = process_time() - begun
    for _ in range(TURNS):
        length += NEW
        run = Run("followed", table.slice(0, length), {}).succeeding(run, length - NEW)
        begun = process_time()
        found = diagnose(run, before=found)
        seconds.append(process_time() - begun)
    return whole, statistics.median(seconds[1:])  # the first copies all to where there is room


def main() -> None:
    """Print a line for each length."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    print(f"{'rows':>12}{'all, s':>10}{f'{NEW:,} more, s':>16}{'ratio':>8}")
    for rows in parser.parse_args().rows:
        whole, more = measured(rows)
        print(f"{rows:>12,}{whole:>10.3f}{more:>16.3f}{more / whole:>8.3f}", flush=True)


if __name__ == "__main__":
    main()
