"""The labels, checked: each recording beside its twin, which is the same loop without the fault.

    python -m benchmarks.diagnosis.twin [--seeds 4] [--fault NAME ...] [--cache build/diagnosis]

Up to the onset both are the same to the last bit; at the onset they differ in a column that the label names. Printed is
by how much: the change of that column against the twin, in deviations of the row before it from row to row.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.diagnosis.case import Case
from benchmarks.diagnosis.faults import FAMILIES, made_up
from benchmarks.diagnosis.record import RUN, read, record, recorded
from benchmarks.diagnosis.setting import plan
from spikeview.importers import open_run
from spikeview.run import Run

COMPARED = (
    "loss",
    "grad_norm",
    "grad_none_params",
    "attempted",
    "executed",
    "moved",
    "lr",
    "update_ratio",
    "update_norm",
    "update_cosine",
)
BEFORE = 40


@dataclass(frozen=True)
class Comparison:
    """Where a run first differs from its twin (`row` None: nowhere), in which columns, and by how much at most."""

    onset: int | None
    row: int | None
    columns: tuple[str, ...]
    deviations: float


def compare(case: Case, seed: int, cache: Path) -> Comparison:
    """Record a case, unless the cache holds it, and its twin, and find where they part."""
    chosen, own = plan(case, seed), recorded(case, seed, cache)
    made = read(own)
    with TemporaryDirectory() as folder:
        record(case, replace(chosen, at=chosen.rows), seed, Path(folder) / RUN)
        fault, twin = open_run(own / RUN, made.rank), open_run(Path(folder) / RUN, made.rank)
        apart = {column: _apart(fault, twin, column) for column in COMPARED}
    rows = np.logical_or.reduce(list(apart.values()))
    if not rows.any():
        return Comparison(made.onset, None, (), 0.0)
    row = int(np.argmax(rows))
    columns = tuple(column for column in COMPARED if apart[column][row])
    sizes = [_deviations(fault, column, row) for column in columns if column in case.signals]
    return Comparison(made.onset, row, columns, max(sizes, default=0.0))


def _apart(fault: Run, twin: Run, column: str) -> np.ndarray:
    left, right = (run.values(column).astype(float) for run in (fault, twin))
    known = fault.recorded(column) == twin.recorded(column)
    return ~(known & ((left == right) | (np.isnan(left) & np.isnan(right))))


def _deviations(run: Run, column: str, row: int) -> float:
    """How far a row is from those before it, in robust deviations of their changes; infinite where nothing varied."""
    values = run.values(column).astype(float)
    with np.errstate(all="ignore"):
        scaled = values if column in ("update_cosine", "moved", "attempted", "grad_none_params") else np.log(values)
    recent = scaled[max(0, row - BEFORE) : row]
    recent = recent[np.isfinite(recent)]
    if not np.isfinite(scaled[row]) or len(recent) < 3:
        return float("inf")
    spread = 1.4826 * float(np.median(np.abs(np.diff(recent)))) / 2**0.5
    distance = abs(scaled[row] - np.median(recent[-9:]))
    return float(distance / spread) if spread else float("inf") * (distance > 0)


def main(given: Sequence[str] | None = None) -> None:
    """Compare and print; the labels that do not hold are marked."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=4)
    options.add_argument("--fault", nargs="+")
    options.add_argument("--cache", type=Path, default=Path("build/diagnosis"))
    chosen = options.parse_args(given)
    cases = [case for family in FAMILIES if family is not made_up for case in family.FAULTS if not case.since_start]
    for case in (case for case in cases if not chosen.fault or case.name in chosen.fault):
        for seed in range(chosen.seeds):
            found = compare(case, seed, chosen.cache)
            holds = found.row == found.onset and (not case.signals or set(case.signals) & set(found.columns))
            where = f"onset {found.onset}, parts at {found.row} in {', '.join(found.columns)}"
            print(f"{'  ' if holds else '? '}{case.name}:{seed} {where}, by {found.deviations:.1f}", flush=True)


if __name__ == "__main__":
    main()
