"""run.json and events.jsonl: what is said about a run beside its rows, as plain JSON that any tool reads."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from recorder.schema import SCHEMA_VERSION
from recorder.store.errors import StoreError
from recorder.store.files import replace_file
from recorder.store.values import clean_text

MANIFEST = "run.json"

_NOT_A_RUN = "give the directory that the recorder wrote"


def plain(value: Any) -> Any:
    """A value as JSON holds it: non-finite floats as "nan", "inf", "-inf", and anything unknown by its text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {clean_text("name", str(name)): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return clean_text("text", str(value))


def to_json(value: Any, indent: int | None = None) -> bytes:
    """JSON in UTF-8, on one line unless indented."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, indent=indent).encode()


def write_manifest(run: Path, manifest: Mapping[str, Any]) -> None:
    """Put a manifest in place of the one that is there."""
    replace_file(run / MANIFEST, to_json(manifest, indent=2) + b"\n")


def read_manifest(run: Path) -> dict[str, Any]:
    """The manifest of a run. Raises StoreError where there is none, or one that this version cannot read."""
    path = run / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise StoreError(run, _why_no_run(run), _NOT_A_RUN) from None
    except NotADirectoryError:
        raise StoreError(run, "is a file, not a run directory", _NOT_A_RUN) from None
    except OSError as error:
        raise StoreError(path, f"cannot be read ({error.strerror})", "check its permissions") from None
    except (ValueError, RecursionError) as error:
        raise StoreError(path, f"is not JSON ({error})", "restore it from a copy") from None
    if not isinstance(manifest, dict):
        raise StoreError(path, "is not a JSON object", "restore it from a copy")
    version = manifest.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise StoreError(path, "has no schema_version, so the recorder did not write it", _NOT_A_RUN)
    if version > SCHEMA_VERSION:
        what = f"was written with schema version {version}, and this version reads up to {SCHEMA_VERSION}"
        raise StoreError(run, what, "update spikeview")
    return manifest


def events_path(run: Path, rank: int) -> Path:
    """The events of a rank. A file each: a line that could not be finished is cut, so a file has one writer."""
    return run / ("events.jsonl" if rank == 0 else f"events-rank={rank}.jsonl")


def read_events(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The events in order, and a note on each kind of line that had to be left out."""
    try:
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
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _why_no_run(run: Path) -> str:
    if not run.exists():
        return "no such directory"
    if not any(run.iterdir()):
        return "is an empty directory"
    return f"holds no {MANIFEST}, so it is not a run"
