"""run.json and events.jsonl: what is said about a run beside its rows, as plain JSON that any tool reads."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from recorder.schema import SCHEMA_VERSION
from recorder.store.errors import ReplacedError, StoreError, cannot_read
from recorder.store.files import replace_file
from recorder.store.regular import regular_size
from recorder.store.values import clean_text

MANIFEST = "run.json"

LARGEST_MANIFEST = 64 * 2**20
LARGEST_EVENTS = 256 * 2**20
MOST_EVENTS = 2**20
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
        return plain(json.loads(data.decode("utf-8-sig"), parse_int=_whole))
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _whole(digits: str) -> int | str:
    """A whole number that 64 bits hold; a larger one as its text, for nothing in a run counts so far."""
    value = int(digits) if len(digits) <= 20 else 2**63
    return value if -(2**63) <= value < 2**63 else digits


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


@dataclass(frozen=True)
class StoredEvents:
    """The events in order up to the byte `end`, and a note on each kind of line that had to be left out.

    `last` is the last line that was read: where another stands in its place, the file is another.
    """

    said: tuple[dict[str, Any], ...] = ()
    end: int = 0
    last: bytes = b""
    damaged: int = 0
    notes: tuple[str, ...] = ()


def read_events(path: Path, after: StoredEvents = StoredEvents()) -> StoredEvents:
    """The events of a file: those that were read before, and what came `after` them; itself where nothing did.

    Raises StoreError where the path is no file, ReplacedError where it is another file than was read.
    """
    try:
        size = regular_size(path, path.parent)
        if size > LARGEST_EVENTS:
            what = f"holds {size:,} bytes, more than the events of any run: they are left out"
            return replace(after, notes=(f"{path.name} {what}",))
        with path.open("rb") as file:
            file.seek(after.end - len(after.last))
            data = file.read()
    except FileNotFoundError:
        data = b""
    except OSError as error:
        return replace(after, notes=(f"{path.name} cannot be read ({error.strerror}): the events are left out",))
    if not data.startswith(after.last):
        raise ReplacedError(path)
    *lines, rest = data[len(after.last) :].split(b"\n", MOST_EVENTS - len(after.said) - after.damaged)
    events = [event for line in lines if (event := _event(line)) is not None]
    damaged = after.damaged + len(lines) - len(events)
    notes = ["the last event was being written when the run ended"] if rest else []
    if b"\n" in rest:
        notes = [f"{path.name} holds more than {MOST_EVENTS:,} lines: those after them are left out"]
    notes += [f"{damaged} damaged lines of {path.name} are left out"] if damaged else []
    if not lines and tuple(notes) == after.notes:
        return after
    read = len(data) - len(after.last) - len(rest)
    last = lines[-1] + b"\n" if lines else after.last
    return StoredEvents((*after.said, *events), after.end + read, last, damaged, tuple(notes))


def drop_torn_event(path: Path) -> bool:
    """Cut a last line that was never finished, so that the next one starts a line of its own; whether there was one."""
    data = path.read_bytes() if path.exists() else b""
    is_torn = data[-1:] not in (b"", b"\n")
    if is_torn:
        replace_file(path, data[: data.rfind(b"\n") + 1])
    return is_torn


def _event(line: bytes) -> dict[str, Any] | None:
    if not line.strip():
        return None
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
