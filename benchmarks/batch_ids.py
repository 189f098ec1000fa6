"""What batch ids cost: beside a plain loader, on the disk, and when a sample is looked for.

    python -m benchmarks.batch_ids [--batches 200]

Batches of 32, 512 and 8,192 samples, in order and shuffled, from a million samples of eight numbers in memory; both
loaders take turns, in one process without workers (workers write the ids beside the training). A dataset that reads
files or decodes images takes far longer for a batch, so that the share falls.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from recorder.data import identified
from recorder.sample_ids import as_text
from recorder.store import RunWriter
from spikeview.importers import open_run
from spikeview.rules.diagnosis import Diagnosis
from spikeview.rules.samples import batches_with

SAMPLES = 1_000_000
SIZES = (32, 512, 8192)


def without_end(loader: Any) -> Iterator[Any]:
    """Batches of as many epochs as are asked for."""
    while True:
        yield from loader


def loading(size: int, shuffle: bool, batches: int) -> tuple[float, float, list[str]]:
    """Median seconds of a batch of the plain and of the identified loader, which take turns, and the ids."""
    dataset = TensorDataset(torch.zeros(SAMPLES, 8))
    loaders = [DataLoader(dataset, batch_size=size, shuffle=shuffle) for _ in range(2)]
    plain, named = without_end(loaders[0]), without_end(identified(loaders[1]))
    times: tuple[list[float], list[float]] = ([], [])
    texts = []
    for _ in range(batches + 2):
        for each, spent in zip((plain, named), times, strict=True):
            started = perf_counter()
            found = next(each)
            spent.append(perf_counter() - started)
        texts.append(str(found[0]))
    return median(times[0][2:]), median(times[1][2:]), texts


def storing(texts: list[str]) -> tuple[float, float]:
    """Median seconds of storing a row, and the bytes of it in a sealed part."""
    spent = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        writer = RunWriter.create(path, {})
        for row, text in enumerate(texts):
            started = perf_counter()
            writer.append({"row": row, "segment": 0, "step": row, "micro_step": 0, "optimizer": "o", "time_ns": row,
                           "batch_id": text})  # fmt: skip
            spent.append(perf_counter() - started)
        writer.close()
        size = sum(part.stat().st_size for part in path.rglob("*.parquet"))
    return median(spent), size / len(texts)


def searching(rows: int, size: int) -> float:
    """Seconds of looking for a sample among the shuffled batches of so many rows."""
    generator = torch.Generator().manual_seed(0)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        writer = RunWriter.create(path, {})
        for row in range(rows):
            text = as_text(torch.randint(SAMPLES, (size,), generator=generator).tolist())
            writer.append({"row": row, "segment": 0, "step": row, "micro_step": 0, "optimizer": "o", "time_ns": row,
                           "batch_id": text})  # fmt: skip
        writer.close()
        run = open_run(path)
        started = perf_counter()
        batches_with(8217, {0: run}, Diagnosis(run, (), (), ()))
        return perf_counter() - started


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--batches", type=int, default=200)
    given = options.parse_args()
    torch.set_num_threads(1)
    print("samples           plain      with ids  ratio       storing   in a part")
    for size in SIZES:
        for shuffle in (False, True):
            plain, named, texts = loading(size, shuffle, given.batches)
            stored, sealed = storing(texts)
            print(
                f"{size:5} {'shuffled' if shuffle else 'in order':<9} {plain * 1e6:6.0f} us {named * 1e6:8.0f} us "
                f"{named / plain:8.2f} {stored * 1e6:9.1f} us {sealed:9.0f} B"
            )
    for size in SIZES[:2]:
        rows = 20_000
        print(f"looking for a sample in {rows:,} rows of {size} shuffled samples: {searching(rows, size):.2f} s")


if __name__ == "__main__":
    main()
