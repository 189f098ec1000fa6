"""The whole corpus: what is recorded with how many seeds, and recorded and diagnosed in parallel."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.diagnosis.case import Case
from benchmarks.diagnosis.faults import FAULTS
from benchmarks.diagnosis.healthy import HEALTHY
from benchmarks.diagnosis.record import recorded
from benchmarks.diagnosis.score import Score, score

Job = tuple[str, int]
CASES: dict[str, Case] = {case.name: case for case in (*FAULTS, *HEALTHY)}


def jobs(names: Sequence[str], seeds: Sequence[int]) -> list[Job]:
    """Every case of these names with every seed; the long recordings first, so that no process ends up alone."""
    chosen = [CASES[name] for name in names]
    chosen.sort(key=lambda case: -case.rows[1])
    return [(case.name, seed) for case in chosen for seed in seeds]


def scores(work: Sequence[Job], cache: Path, processes: int) -> Iterator[Score]:
    """The score of each job, as they come; what is not in the cache is recorded."""
    # numpy's BLAS would start threads of its own in each process
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_one, work, [cache] * len(work), chunksize=1)


def _one(job: Job, cache: Path) -> Score:
    name, seed = job
    return score(CASES[name], recorded(CASES[name], seed, cache))
