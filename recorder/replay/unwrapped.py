"""A capture of a wrapped model under the names of the model itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from recorder.capture import Capture

# What DistributedDataParallel and torch.compile put before the names of what they wrap.
WRAPPERS = ("module.", "_orig_mod.")


def unwrapped(capture: Capture, model: torch.nn.Module) -> Capture:
    """The capture with the names that the model has, where a wrapper was captured and the entry builds none."""
    own = {name for name, _ in model.named_parameters()}
    before = ""
    for _ in WRAPPERS:
        rest = [name.removeprefix(before) for name in capture.contents.get("parameters", {}) if isinstance(name, str)]
        found = next((w for w in WRAPPERS if rest and all(name.startswith(w) for name in rest)), None)
        if found is None or own & set(rest):
            break
        before += found
    return _without(capture, before) if before else capture


def _without(capture: Capture, before: str) -> Capture:
    def renamed(named: Mapping[Any, Any]) -> dict[Any, Any]:
        return {name.removeprefix(before) if isinstance(name, str) else name: value for name, value in named.items()}

    contents = dict(capture.contents)
    for kind in ("parameters", "buffers", "modes"):
        if kind in contents:
            contents[kind] = renamed(contents[kind])
    if "modes" in contents:  # the wrapped model itself has no dot after it
        contents["modes"][""] = contents["modes"].get(before.rstrip("."), True)
    contents["layouts"] = {
        name: {**layout, "groups": [[each and each.removeprefix(before) for each in g] for g in layout["groups"]]}
        for name, layout in contents.get("layouts", {}).items()
    }
    return replace(capture, contents=contents)
