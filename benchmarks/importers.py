"""What it takes to open a large log: time, and memory beside the size of its file.

    python -m benchmarks.importers [--rows 1000000]

Written are a JSON lines and a CSV file of so many rows with five columns, the same with a malformed line in every
thousand, and a TensorBoard event file of about 100 MB with six tags. Each is opened in a process of its own. Printed
are the seconds until there is a Run, by the clock and of the processor, how many rows that makes in 5 s by the clock
(of an event file: scalars), the ratio to taking the same file apart in plain Python (`json.loads` of a line,
`csv.reader` with `float`, the frames of the events without what is in them), and the peak of memory above that of the
process before, as a multiple of the file. Peaks are read from /proc: Linux only.
"""

from __future__ import annotations

import argparse
import csv
import json
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spikeview.importers import open_run
from spikeview.importers.tensorboard.crc32c import masked

TAGS = ("train/loss", "train/grad_norm", "train/learning_rate", "perf/tokens_per_second", "train/loss_scale", "mfu")
EVENT_BYTES = 100 * 2**20
EVENT_SIZE = 54  # about, with its frame
EVERY = 1000


def values(rows: int) -> Iterator[tuple[int, float, float, float]]:
    """Step, loss, norm and time of each row."""
    random = np.random.default_rng(0)
    pairs = zip(random.random(rows).tolist(), random.random(rows).tolist(), strict=True)
    return ((step, 2 + loss, norm, 1.7e9 + step / 2) for step, (loss, norm) in enumerate(pairs))


def json_lines(path: Path, rows: int, broken: bool = False) -> None:
    """One object a line."""
    with path.open("w") as file:
        for step, loss, norm, time in values(rows):
            if broken and step % EVERY == 0:
                file.write('{"step": 5, "lo\n')
            file.write(
                f'{{"step": {step}, "loss": {loss:.6f}, "grad_norm": {norm:.6f}, "lr": 0.0003, "time": {time}}}\n'
            )


def comma_separated(path: Path, rows: int, broken: bool = False) -> None:
    """One line a row under a header."""
    with path.open("w") as file:
        file.write("step,loss,grad_norm,lr,time\n")
        for step, loss, norm, time in values(rows):
            if broken and step % EVERY == 0:
                file.write("12,3.\n")
            file.write(f"{step},{loss:.6f},{norm:.6f},0.0003,{time}\n")


def event_file(path: Path) -> None:
    """Scalars of TAGS, step by step, with sound checksums; the steps of one size are written as one matrix of bytes."""
    last = EVENT_BYTES // (EVENT_SIZE * len(TAGS))
    with path.open("wb") as file:
        for size, first in enumerate((1, 2**7, 2**14), start=1):
            steps = np.arange(first, min(2 ** (7 * size), last))
            file.write(np.hstack([_frames(steps, size, tag.encode()) for tag in TAGS]).tobytes())


def _frames(steps: NDArray[np.int64], size: int, tag: bytes) -> NDArray[np.uint8]:
    """[steps, bytes]: the scalars of a tag in their frames, where a step takes `size` bytes."""
    digits = (steps[:, None] >> (7 * np.arange(size))) & 0x7F | np.where(np.arange(size) < size - 1, 0x80, 0)
    value = b"\x0a" + bytes([len(tag)]) + tag + b"\x15"
    head = b"\x2a" + bytes([len(value) + 6]) + b"\x0a" + bytes([len(value) + 4]) + value
    times, values_ = (1.7e9 + steps).astype("<f8"), np.cos(steps).astype("<f4")
    event = np.hstack([_same(b"\x09", steps), _bytes(times), _same(b"\x10", steps), digits.astype(np.uint8),
                       _same(head, steps), _bytes(values_)])  # fmt: skip
    length = struct.pack("<Q", event.shape[1])
    length += masked(np.frombuffer(length, np.uint8)[None]).astype("<u4").tobytes()
    return np.hstack([_same(length, steps), event, _bytes(masked(event).astype("<u4"))])


def _same(data: bytes, steps: NDArray[np.int64]) -> NDArray[np.uint8]:
    return np.tile(np.frombuffer(data, np.uint8), (len(steps), 1))


def _bytes(values_: NDArray[Any]) -> NDArray[np.uint8]:
    return values_.view(np.uint8).reshape(len(values_), -1)


def by_json(path: Path) -> int:
    """Every line with `json.loads`, as far as it goes."""
    count = 0
    with path.open() as file:
        for line in file:
            with suppress(ValueError):
                json.loads(line)
                count += 1
    return count


def by_csv(path: Path) -> int:
    """Every cell with `float`."""
    count = 0
    with path.open() as file:
        for row in csv.reader(file):
            with suppress(ValueError):
                [float(cell) for cell in row]
                count += 1
    return count


def by_frame(path: Path) -> int:
    """Every frame of an event file, without looking into it."""
    data, at, count = path.read_bytes(), 0, 0
    while at < len(data):
        at += 16 + struct.unpack_from("<Q", data, at)[0]
        count += 1
    return count


CASES: dict[str, tuple[Callable[[Path, int], object], Callable[[Path], int]]] = {
    "log.jsonl": (json_lines, by_json),
    "log.csv": (comma_separated, by_csv),
    "malformed.jsonl": (partial(json_lines, broken=True), by_json),
    "malformed.csv": (partial(comma_separated, broken=True), by_csv),
    "events.out.tfevents.1": (lambda path, rows: event_file(path), by_frame),
}


def measured(path: Path) -> dict[str, float]:
    """Open one file here, where nothing else was opened."""
    open_run(Path(__file__).parents[1] / "sample_runs" / "healthy")  # what is imported late is no cost of a log's
    before = _peak()
    start, used = perf_counter(), process_time()
    run = open_run(path)
    taken, cpu = perf_counter() - start, process_time() - used
    return {"seconds": taken, "cpu": cpu, "rows": len(run), "memory": _peak() - before}


def _peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


def main() -> None:
    """Print one line a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one is not None:
        print(json.dumps(measured(asked.one)))
        return
    print("file                       MB       rows  seconds    cpu       in 5 s  to Python  memory")
    with TemporaryDirectory() as folder:
        for name, (write, plainly) in CASES.items():
            path = Path(folder) / name
            write(path, asked.rows)
            start = process_time()
            plainly(path)
            plain = process_time() - start
            command = [sys.executable, "-m", "benchmarks.importers", "--one", str(path)]
            found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            size, units = path.stat().st_size, found["rows"] * (len(TAGS) if name.startswith("events") else 1)
            print(
                f"{name:<22} {size / 2**20:>6.0f} {found['rows']:>10,} {found['seconds']:>8.2f} {found['cpu']:>6.2f}"
                f" {5 * units / found['seconds']:>12,.0f} {found['cpu'] / plain:>10.2f} {found['memory'] / size:>6.1f}x"
            )
            path.unlink()


if __name__ == "__main__":
    main()
