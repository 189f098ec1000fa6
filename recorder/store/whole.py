"""A run that is complete already, written at once: no journal, no seal, its rows as one table."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from recorder.store.documents import events_path, to_json, write_manifest
from recorder.store.errors import StoreError
from recorder.store.folder import part_path, table_folder
from recorder.store.parts import write_part

PART_ROWS = 2**20


def write_run(
    path: str | PathLike[str],
    table: pa.Table,
    manifest: Mapping[str, Any],
    events: Sequence[Mapping[str, Any]],
    layers: pa.Table | None = None,
    rank: int = 0,
) -> None:
    """Write rows with the columns of STEPS, and any further ones, as one rank of a new run; `layers` those of LAYERS.

    The manifest comes last: until then the directory is no run. Raises StoreError where there is something at the path
    already, or where it cannot be written; then nothing is left there.
    """
    run = Path(path)
    try:
        if run.exists() and (not run.is_dir() or any(run.iterdir())):
            raise StoreError(run, "is there already, and a run needs a directory of its own", "choose another path")
        own = not run.exists()
        run.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(run, f"cannot be written ({error.strerror})", "choose another path for the run") from None
    try:
        _write_table(table_folder(run, "steps", rank), table)
        if layers is not None and layers.num_rows:
            _write_table(table_folder(run, "layers", rank), layers)
        events_path(run, rank).write_bytes(b"".join(to_json(event) + b"\n" for event in events))
        write_manifest(run, manifest)
    except BaseException as error:
        for place in (run,) if own else tuple(run.iterdir()):
            shutil.rmtree(place, ignore_errors=True) if place.is_dir() else place.unlink(missing_ok=True)
        if isinstance(error, (OSError, pa.ArrowException)):
            raise StoreError(run, f"cannot be written ({error})", "free space, or choose another path") from error
        raise


def _write_table(folder: Path, table: pa.Table) -> None:
    folder.mkdir(parents=True)
    for number, first in enumerate(range(0, table.num_rows, PART_ROWS)):
        write_part(part_path(folder, number), table.slice(first, PART_ROWS), np.zeros(0, np.int64))
