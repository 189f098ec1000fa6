"""The log of a mixed-precision loop as one CSV: schedule, gradient, scale and skips side by side."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any, TextIO

from recorder.store import StoreError, read_run
from recorder.store.files import replace_file

COLUMNS = ("step", "lr", "grad_l2_pre_clip", "grad_l2_post_clip", "loss", "skipped", "skip_reason", "scaler_scale")
_READ = ["row", "optimizer", "step", "lr", "grad_norm", "clip_coef", "loss", "executed", "skip_reason", "loss_scale"]


def write_csv(run: str, out: TextIO, optimizer: str | None = None) -> int:
    """Write one line per step of one optimizer and return how many.

    Micro-steps that only accumulated are left out: they belong to the step that follows. `grad_l2_post_clip` is the
    norm times the factor really applied; both norms are empty where they were not recorded. Raises
    `recorder.store.StoreError` where the run cannot be read and KeyError for an optimizer it does not hold.
    """
    rows: list[dict[str, Any]] = read_run(run, columns=_READ).table.to_pylist()
    names = list(dict.fromkeys(row["optimizer"] for row in rows))
    chosen = optimizer if optimizer is not None else next(iter(names), None)
    if rows and chosen not in names:
        raise KeyError(f"no optimizer {chosen!r} in this run: there are {', '.join(map(str, names))}")
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    lines = list(_lines(row for row in rows if row["optimizer"] == chosen))
    writer.writerows(lines)
    return len(lines)


def write_csv_file(run: str, path: Path, optimizer: str | None = None, replace: bool = False) -> int:
    """Write them to a file, which is there as a whole or not at all; the rest as `write_csv`.

    Raises StoreError too where the file exists and is not to be replaced, and where it cannot be written.
    """
    if path.exists() and not replace:
        raise StoreError(path, "exists already", "give --force to replace it, or another name")
    out = StringIO(newline="")
    count = write_csv(run, out, optimizer)
    try:
        replace_file(path, out.getvalue().encode())
    except OSError as error:
        raise StoreError(path, f"cannot be written ({error.strerror})", "give a place that can be") from None
    return count


def _lines(rows: Iterator[dict[str, Any]]) -> Iterator[list[Any]]:
    for row in rows:
        if row["skip_reason"] == "accumulating":
            continue
        norm, factor = row["grad_norm"], row["clip_coef"]
        after = None if norm is None else norm * (1.0 if factor is None else factor)
        skipped = "" if row["executed"] is None else int(not row["executed"])
        yield [row["step"], row["lr"], norm, after, row["loss"], skipped, row["skip_reason"], row["loss_scale"]]
