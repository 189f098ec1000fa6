"""run.json and events.jsonl: what is said about a run beside its rows, as plain JSON that any tool reads."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from recorder.schema import SCHEMA_VERSION
from recorder.store.errors import StoreError, cannot_read
from recorder.store.files import replace_file
from recorder.store.regular import regular_size
from recorder.store.values import clean_text

MANIFEST = "run.json"

LARGEST_MANIFEST = 64 * 2**20
LEVELS = 64
DEEPER = "…"

_NOT_A_RUN = "give the directory that the recorder wrote"
_RESTORE = "restore it from a copy"


def plain(value: Any, levels: int = LEVELS) -> Any:
    """A value as JSON holds it: non-finite floats as "nan", "inf", "-inf", and anything unknown by its text.

    What is nested deeper than so many levels is left out, for its text and its tables would be of no use to anyone.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (Mapping, list, tuple, set, frozenset)) and levels == 0:
        return DEEPER
    if isinstance(value, Mapping):
        return {clean_text("name", str(name)): plain(item, levels - 1) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, levels - 1) for item in value]
    return clean_text("text", str(value))


def to_json(value: Any, indent: int | None = None) -> bytes:
    """JSON in UTF-8, on one line unless indented."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, indent=indent).encode()


def from_json(data: bytes) -> Any:
    """What JSON in UTF-8 holds, as `plain` leaves it: whoever wrote it. Raises ValueError for anything else."""
    try:
        return plain(json.loads(data.decode("utf-8-sig")))
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def write_manifest(run: Path, manifest: Mapping[str, Any]) -> None:
    """Put a manifest in place of the one that is there."""
    replace_file(run / MANIFEST, to_json(manifest, indent=2) + b"\n")


def read_manifest(run: Path) -> dict[str, Any]:
    """The manifest of a run. Raises StoreError where there is none, or one that this version cannot read."""
    path = run / MANIFEST
    try:
        size = regular_size(path, run)
        data = b"" if size > LARGEST_MANIFEST else path.read_bytes()
    except FileNotFoundError:
        raise StoreError(run, _why_no_run(run), _NOT_A_RUN) from None
    except NotADirectoryError:
        raise StoreError(run, "is a file, not a run directory", _NOT_A_RUN) from None
    except OSError as error:
        raise cannot_read(path, error) from None
    if size > LARGEST_MANIFEST:
        raise StoreError(path, f"holds {size:,} bytes, more than any manifest", _RESTORE)
    try:
        manifest = from_json(data)
    except ValueError as error:
        raise StoreError(path, f"is not JSON in UTF-8 ({error})", _RESTORE) from None
    if not isinstance(manifest, dict):
        raise StoreError(path, "is not a JSON object", _RESTORE)
    _check_version(run, manifest)
    return manifest


def events_path(run: Path, rank: int) -> Path:
    """The events of a rank. A file each: a line that could not be finished is cut, so a file has one writer."""
    return run / ("events.jsonl" if rank == 0 else f"events-rank={rank}.jsonl")


def read_events(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The events in order, and a note on each kind of line that had to be left out.

    Raises StoreError where the path is no file.
    """
    try:
        regular_size(path, path.parent)
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return [], []
    except OSError as error:
        return [], [f"{path.name} cannot be read ({error.strerror}): the events are left out"]
    notes = ["the last event was being written when the run ended"] if lines.pop() else []
    events = [event for line in lines if (event := _event(line)) is not None]
    if len(events) < len(lines):
        notes.append(f"{len(lines) - len(events)} damaged lines of {path.name} are left out")
    return events, notes


def drop_torn_event(path: Path) -> None:
    """Cut a last line that was never finished, so that the next one starts a line of its own."""
    if path.exists():
        data = path.read_bytes()
        if not data.endswith(b"\n"):
            replace_file(path, data[: data.rfind(b"\n") + 1])


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = from_json(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def _check_version(run: Path, manifest: Mapping[str, Any]) -> None:
    path, version = run / MANIFEST, manifest.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise StoreError(path, "has no schema_version, so the recorder did not write it", _NOT_A_RUN)
    if "schema" in manifest:  # other documents name theirs, as a report does
        raise StoreError(path, "is a document of another kind, not the manifest of a run", _RESTORE)
    if version < 1:
        raise StoreError(path, f"has schema version {version}, which no recorder ever wrote", _RESTORE)
    if version > SCHEMA_VERSION:
        what = f"was written with schema version {version}, and this version reads up to {SCHEMA_VERSION}"
        raise StoreError(run, what, "update spikeview")


def _why_no_run(run: Path) -> str:
    try:
        empty = not any(run.iterdir())
    except FileNotFoundError:
        return "no such directory"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return "is an empty directory" if empty else f"holds no {MANIFEST}, so it is not a run"
