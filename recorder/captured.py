"""RUN/captures/: the captures of a run, and whether they are whole. Without torch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from recorder.store import StoreError
from recorder.store.capture_names import CAPTURES, row_and_rank
from recorder.store.documents import LARGEST_MANIFEST
from recorder.store.regular import regular_size

VERSION = 1
FACTS = "capture.json"
TENSORS = "tensors.safetensors"


def captures_of(run: Path, rank: int | None = None) -> list[Path]:
    """The captures of a run, of one rank or of all, in the order of their rows."""
    found = {
        path.parent: name
        for path in (run / CAPTURES).glob(f"row-*/{FACTS}")
        if (name := row_and_rank(path.parent.name))
    }
    return [path for path in sorted(found, key=found.__getitem__) if rank in (None, found[path][1])]


def row_of(path: Path) -> int:
    """The row that a capture is named after; -1 for a name that the recorder does not give."""
    return (row_and_rank(path.name) or (-1, 0))[0]


def rank_of(path: Path) -> int:
    """The rank that a capture is named after; 0 where it names none."""
    return (row_and_rank(path.name) or (-1, 0))[1]


def faults_of(path: Path) -> list[str]:
    """What makes a capture less than whole: files, their sizes, and the tensors that its values name; none where it is.

    The header of the tensors is read, and that there are as many bytes as it says; not the numbers.
    """
    where, run = f"{CAPTURES}/{path.name}", path.parent.parent
    try:
        if regular_size(path / FACTS, run) > LARGEST_MANIFEST:
            return [f"{where}/{FACTS} is larger than any capture's"]
        document = json.loads((path / FACTS).read_text(encoding="utf-8"))
        version, row = document["version"], document["facts"]["row"]
        regular_size(path / TENSORS, run)
        with safe_open(path / TENSORS, framework="np") as file:
            held = set(file.keys())
        lacking = sorted(set(_tensors(document["contents"])) - held)
    except FileNotFoundError as error:
        return [f"{where} holds no {Path(error.filename or TENSORS).name}"]
    except StoreError as error:
        return [str(error)]
    except SafetensorError as error:
        return [f"{where}/{TENSORS} is damaged ({error})"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        return [f"{where}/{FACTS} cannot be read as a capture ({type(error).__name__})"]
    if version != VERSION:
        return [f"{where} has version {version!r:.20}, and this version reads {VERSION}"]
    faults = [f"{where} holds row {row!r:.20}"] if row != row_of(path) else []
    return [*faults, *([f"{where} lacks tensor {lacking[0]!r:.80}"] if lacking else [])]


def _tensors(plain: Any) -> Iterator[str]:
    """The names of the tensors in a value, as `recorder.capture.nested` writes them."""
    if isinstance(plain, list):
        for item in plain:
            yield from _tensors(item)
    elif isinstance(plain, dict):
        name = next((plain[key] for key in ("$tensor", "$array") if len(plain) == 1 and key in plain), None)
        if name is not None:
            yield str(name)
        else:
            yield from _tensors(list(plain.values()))
