"""A run that may be shown to strangers: who ran it, where, and on which data is taken out of it; its numbers stay."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from recorder.schema import COLUMNS
from recorder.store.lazy_table import in_memory
from spikeview.meaning import LOG
from spikeview.run import Run

REMOVED = "(removed)"
TOLD = "redacted: host, user, paths, names of batches and checkpoints, and free texts were taken out"

# What the recorder itself writes in words: versions, classes, types. Elsewhere every text may be the user's own.
_OWN = {"recorder", "created", "model", "device", "optimizers", "scaler", "deep", LOG}
_WHO = {"host", "hostname", "node", "user", "username", "file"}
_EVENT_TEXTS = {"kind", "trigger", "optimizer", "signal", "restored", "came_back", "lost"}
_PATH = re.compile(r"\S*[/\\~]\S*")
_NAME = re.compile(r"[\w.-]+")


def redacted(run: Run, path: str) -> Run:
    """The run as it may be shown, under another path; its rows, and with them its diagnosis, stay as they are.

    Batches and checkpoints are numbered in the order in which the run first names them, so that each keeps one name.
    """
    checkpoints = _numbered(run.events)
    return replace(
        run,
        path=path,
        table=_rows(in_memory(run.table)),
        manifest=_manifest(run.manifest),
        events=[_event(event, checkpoints) for event in run.events],
        notes=(TOLD,),
        rewinds=[replace(rewind, checkpoint=None) for rewind in run.rewinds],
        captures=(),
        source=None,
        _cache={},
        _views={},
        _before={},
    )


def _rows(table: pa.Table) -> pa.Table:
    """Without the user's texts, and with a number for each batch."""
    own = [name for name in table.column_names if name not in COLUMNS and not _is_plain(table[name].type)]
    table = table.drop_columns(own)
    if "batch_id" not in table.column_names:
        return table
    named: Any = table["batch_id"].cast(pa.large_string()).combine_chunks().dictionary_encode()
    numbers = pa.array([_letters(at) for at in range(len(named.dictionary))], pa.string())
    return table.set_column(table.column_names.index("batch_id"), "batch_id", numbers.take(named.indices))


def _letters(at: int) -> str:
    """A, B, ... Z, AA, AB: no number, which a batch of the run may have for its own."""
    letters = ""
    at += 1
    while at:
        at, last = divmod(at - 1, 26)
        letters = chr(ord("A") + last) + letters
    return letters


def _is_plain(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def _manifest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {
        _key(name): _without_paths(value) if name in _OWN else _without_texts(value)
        for name, value in manifest.items()
        if name.lower() not in _WHO
    }


def _event(event: Mapping[str, Any], checkpoints: Mapping[str, str]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name, value in event.items():
        if name in _EVENT_TEXTS:
            told[name] = _without_paths(value)
        elif isinstance(value, str) and value in checkpoints and name in ("name", "from_checkpoint"):
            told[name] = checkpoints[value]
        else:
            told[_key(name)] = _without_texts(value)
    return told


def _numbered(events: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Each name of a checkpoint with the number that stands for it."""
    names = [
        event.get({"checkpoint": "name", "resume": "from_checkpoint"}.get(str(event.get("kind")), ""))
        for event in events
    ]
    return {
        name: f"checkpoint-{at}"
        for at, name in enumerate(dict.fromkeys(name for name in names if isinstance(name, str)))
    }


def _without_paths(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_key(name): _without_paths(item) for name, item in value.items() if str(name).lower() not in _WHO}
    if isinstance(value, (list, tuple)):
        return [_without_paths(item) for item in value]
    return _PATH.sub(REMOVED, value) if isinstance(value, str) else value


def _without_texts(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_key(name): _without_texts(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_texts(item) for item in value]
    return REMOVED if isinstance(value, str) else value


def _key(name: object) -> str:
    """A name of a setting; what is none may be a path or a text as well."""
    return str(name) if _NAME.fullmatch(str(name)) else REMOVED
