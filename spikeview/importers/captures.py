"""The captures of a run directory, and the replays beside them, whoever wrote them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from math import isnan, nan
from pathlib import Path
from typing import Any

from recorder.store import StoreError
from recorder.store.capture_names import CAPTURES, row_and_rank
from recorder.store.documents import from_json
from recorder.store.regular import regular_size
from spikeview.captured import Capture, Comparison, Evaluation, Replay

REPLAY = "replay.json"
VERSION = 1
LARGEST = 2**20
MOST = 200
ENTRY = "package.module:build"


def captures_of(run: Path, rank: int) -> tuple[Capture, ...]:
    """The captured rows of one rank in order, the first MOST of them. What is in the way of one costs no other."""
    return tuple(
        Capture(row, _command(run, row, rank), _replay(place / REPLAY, run, row))
        for row, place in folders(run, rank)[:MOST]
    )


def folders(run: Path, rank: int) -> list[tuple[int, Path]]:
    """The captures of one rank in order: row and place, by their names."""
    try:
        inside = list((run / CAPTURES).iterdir())
    except (OSError, ValueError):  # mostly that there is none
        return []
    named = ((row_and_rank(place.name), place) for place in inside)
    return sorted((name[0], place) for name, place in named if name is not None and name[1] == rank)


def is_replay(name: str) -> bool:
    """Whether a file's name within a run is that of a replay."""
    parts = name.split("/")
    return len(parts) == 3 and (parts[0], parts[2]) == (CAPTURES, REPLAY) and row_and_rank(parts[1]) is not None


def is_of_a_capture(path: Path) -> bool:
    """Whether a file is one of a capture: it holds numbers of a row, but it is no log."""
    return path.parent.parent.name == CAPTURES and row_and_rank(path.parent.name) is not None


def _command(run: Path, row: int, rank: int) -> str:
    of_rank = f" --rank {rank}" if rank else ""
    return f"python -m recorder replay {shlex.quote(str(run))} --row {row}{of_rank} --entry {ENTRY}"


def _replay(path: Path, run: Path, of: int) -> Replay | None:
    """None where the row was not replayed."""
    try:
        size = regular_size(path, run)
        data = path.read_bytes() if size <= LARGEST else None
    except FileNotFoundError:
        return None
    except (OSError, StoreError):
        return _unread("cannot be read")
    if data is None:
        return _unread(f"holds {size:,} bytes, more than any replay's")
    try:
        told = from_json(data)
    except ValueError:
        return _unread("is not JSON")
    found = told.get("comparisons") if isinstance(told, dict) else None
    if not isinstance(found, list):
        return _unread("holds no comparisons")
    row, version = told.get("row", of), told.get("version", VERSION)
    if row != of:
        return _unread(f"is of row {str(row)[:20]}, not of this one")
    if not isinstance(version, int) or version > VERSION:
        return _unread(f"has version {str(version)[:20]}, and this version reads up to {VERSION}: update spikeview")
    made = [_comparison(each) for each in (told.get("reproduced"), *found) if isinstance(each, dict)]
    if not any(each.id for each in made):
        return _unread("holds no comparisons")
    batches = told.get("batches")
    others = map(_evaluation, batches if isinstance(batches, list) else ())
    return Replay(
        str(told.get("summary") or "; ".join(f"{each.hypothesis}: {each.verdict}" for each in made)),
        {each.id: each for each in made},
        _evaluation(told.get("as_recorded")),
        tuple(each for each in others if each is not None),
    )


def _unread(why: str) -> Replay:
    return Replay(f"{REPLAY} {why}", problem=f"{REPLAY} {why}")


def _comparison(told: Mapping[str, Any]) -> Comparison:
    id, hypothesis, outcome, verdict = (str(told.get(key, "")) for key in ("id", "hypothesis", "outcome", "verdict"))
    return Comparison(id or hypothesis, hypothesis, outcome, verdict)


def _evaluation(told: Any) -> Evaluation | None:
    """None for what is none."""
    if not isinstance(told, dict) or not {"loss", "grad_norm"} <= told.keys():
        return None
    parameter = told.get("first_parameter")
    return Evaluation(_number(told["loss"]), _number(told["grad_norm"]), None if parameter is None else str(parameter))


def _number(told: Any) -> float:
    """A number as JSON holds it, or the text of one that is not finite."""
    try:
        value = float(told)
    except (TypeError, ValueError):
        return nan
    return nan if isnan(value) else value  # the same one, so that two readings are equal
