"""RUN/captures/row-000123/: one JSON file and one of tensors, put in place as a whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from recorder.capture.nested import join
from recorder.captured import FACTS, TENSORS, VERSION, row_of
from recorder.guard import describe_error
from recorder.store import StoreError
from recorder.store.capture_names import UNFINISHED
from recorder.store.documents import LARGEST_MANIFEST
from recorder.store.files import sync_directory
from recorder.store.regular import regular_size

_AGAIN = "give a capture that the recorder wrote"
_FACTS = {
    "row": int, "executed_n": int, "executed_in_segment": int, "grad_nonfinite_params": int,
    "loss": (int, float), "grad_norm": (int, float), "loss_scale": (int, float), "max_norm": (int, float),
    "precision": str, "optimizer": str, "grad_norm_source": str, "on_request": bool,
}  # fmt: skip
_CONTENTS = {
    "parameters": Mapping, "buffers": Mapping, "optimizers": Mapping, "layouts": Mapping, "rng": Mapping,
    "modes": Mapping, "training": bool, "earlier": list,
}  # fmt: skip

_DAMAGED = (
    OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, SafetensorError,
)  # fmt: skip


@dataclass(frozen=True)
class Capture:
    """One capture as it was read. `facts` are those of its row; `left_out` says what it does not hold, a line each.

    `contents` holds, where they were captured: parameters and buffers by name, optimizers, schedulers and scalers
    (their states by the optimizers' names), layouts (class and parameters' names of each optimizer), rng, batch, and
    earlier: rows, batch ids and batches of those before.
    """

    path: Path
    facts: Mapping[str, Any]
    contents: Mapping[str, Any]
    left_out: tuple[str, ...]

    @property
    def row(self) -> int:
        return int(self.facts["row"])


def _check(values: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
    """ValueError where a value is of another type than the recorder writes; what is not there is no fault here."""
    for name, kind in kinds.items():
        value = values.get(name)
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            raise ValueError(f"{name} is {value!r:.60}")


def _check_optimizers(contents: Mapping[str, Any]) -> None:
    for state in contents.get("optimizers", {}).values():
        _check(state, {"state": Mapping, "param_groups": list})
        state["state"], state["param_groups"][0]["lr"]
    for layout in contents.get("layouts", {}).values():
        _check(layout, {"class": str, "groups": list})
        if not all(isinstance(name, str | None) for group in layout["groups"] for name in group):
            raise ValueError("layouts names parameters by what is no text")


def write_capture(
    path: Path, facts: Mapping[str, Any], plain: Any, tensors: dict[str, Tensor], left_out: list[str]
) -> None:
    """Write a capture under a temporary name and rename it, so that it is there as a whole or not at all.

    Raises ValueError where its plain values are more than `read_capture` takes, OSError where the disk takes none.
    """
    document = {"version": VERSION, "facts": facts, "left_out": left_out, "contents": plain}
    text = json.dumps(document, allow_nan=False) + "\n"
    if len(text) > LARGEST_MANIFEST:
        raise ValueError(f"its numbers and texts outside of tensors take {len(text):,} bytes: give tensors or arrays")
    temporary = path.with_name(f"{UNFINISHED}{path.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        save_file(tensors, temporary / TENSORS)
        (temporary / FACTS).write_text(text, encoding="utf-8")
        for name in (TENSORS, FACTS):
            with (temporary / name).open("rb") as file:
                os.fsync(file.fileno())
        temporary.rename(path)
        sync_directory(path.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def read_capture(path: Path) -> Capture:
    """A capture with all its tensors. Raises StoreError where it is damaged, newer than this version, or none."""
    run = path.parent.parent
    try:
        size = regular_size(path / FACTS, run)
        if size > LARGEST_MANIFEST:
            raise StoreError(path / FACTS, f"holds {size:,} bytes, more than any capture's", _AGAIN)
        document = json.loads((path / FACTS).read_text(encoding="utf-8"))
        version = document["version"]
        if not isinstance(version, int) or version < 1:
            raise ValueError(f"version is {version!r:.60}")
        if version > VERSION:
            raise StoreError(path, f"has version {version}, and this version reads up to {VERSION}", "update spikeview")
        regular_size(path / TENSORS, run)
        tensors = load_file(path / TENSORS)
        contents, facts = join(document["contents"], tensors), join(document["facts"], {})
        left_out = tuple(map(str, document["left_out"]))
        _check(facts, _FACTS)
        _check(contents, _CONTENTS)
        contents = {name: value for name, value in contents.items() if value is not None}  # None: it was left out
        _check_optimizers(contents)
        if facts["row"] != row_of(path):
            raise ValueError(f"it holds row {facts['row']}")
    except FileNotFoundError as error:
        raise StoreError(path, f"holds no {Path(error.filename or FACTS).name}", _AGAIN) from None
    except _DAMAGED as error:
        raise StoreError(path, f"cannot be read as a capture ({describe_error(error)})", _AGAIN) from None
    return Capture(path, facts, contents, left_out)
