"""A checkpoint of the user's own as parameters that a captured batch can be fed to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from recorder.capture import Capture
from recorder.replay.setting import Built, ReplayError, in_one_line

_PREFIXES = ("", "module.", "_orig_mod.", "model.")


def at_checkpoint(built: Built, capture: Capture, path: Path) -> Capture:
    """The capture with the parameters and buffers of a checkpoint in the place of its own.

    The file is one of safetensors, or what `torch.save` wrote of a state dict, alone or within a dict; it is read
    without unpickling anything but tensors and plain values. Raises ReplayError where it holds no such model.
    """
    try:
        held = load_file(path) if path.suffix == ".safetensors" else torch.load(path, "cpu", weights_only=True)
    except FileNotFoundError:
        raise ReplayError(f"{path}: no such file") from None
    except Exception as error:  # torch raises whatever a damaged file meets first
        raise ReplayError(f"{path}: cannot be read as a checkpoint ({in_one_line(error)})") from error
    wanted = [name for name, _ in built.model.named_parameters()]
    found = _state(held, wanted, 3)
    if found is None:
        raise ReplayError(f"{path}: holds no state dict with parameter {wanted[0] if wanted else ''} of the model")
    buffers = {name: found[name] for name, _ in built.model.named_buffers() if name in found}
    contents = {**capture.contents, "parameters": {name: found[name] for name in wanted}}
    if len(buffers) == len(list(built.model.named_buffers())):
        contents["buffers"] = buffers
    return replace(capture, contents=contents)


def _state(held: Any, wanted: list[str], deep: int) -> dict[str, Tensor] | None:
    """The dict that holds every parameter, under its name or a wrapper's, in a dict or in those within it."""
    if not isinstance(held, Mapping):
        return None
    for prefix in _PREFIXES:
        if wanted and all(isinstance(held.get(prefix + name), Tensor) for name in wanted):
            named = {name: value for name, value in held.items() if isinstance(name, str)}
            return {name.removeprefix(prefix): value for name, value in named.items() if isinstance(value, Tensor)}
    inner = (_state(value, wanted, deep - 1) for value in held.values()) if deep else ()
    return next((found for found in inner if found is not None), None)
