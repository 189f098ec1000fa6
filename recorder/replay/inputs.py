"""What goes into the forward: the batch as a model can take it, and whether all of it is finite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

import numpy as np
import torch
from torch import Tensor

from recorder.capture import Capture


def as_input(batch: Any, device: torch.device, dtype: torch.dtype) -> Any:
    """A batch on a device; for a model in double precision its floating tensors are doubles too."""

    def moved(tensor: Tensor) -> Tensor:
        is_double = tensor.is_floating_point() and dtype is torch.float64
        return tensor.to(device, torch.float64 if is_double else tensor.dtype)

    return _mapped(batch, moved)


def widened(batch: Any) -> Any:
    """Half-precision tensors, which a model in half precision takes, as the fp32 that its wider copy takes."""
    return _mapped(batch, lambda tensor: tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor)


def not_finite_before(capture: Capture) -> str | None:
    """What went into the forward already not finite: the batch, or the name of a parameter or buffer; None for none."""
    if not _is_finite(capture.contents.get("batch")):
        return "the batch"
    held = {**capture.contents.get("parameters", {}), **capture.contents.get("buffers", {})}
    return next((name for name, tensor in held.items() if not _is_finite(tensor)), None)


def _mapped(batch: Any, function: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(batch, Tensor):
        return function(batch)
    if isinstance(batch, Mapping):
        return {key: _mapped(value, function) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        items = [_mapped(item, function) for item in batch]
        return items if isinstance(batch, list) else tuple(items)
    return batch


def _is_finite(value: Any) -> bool:
    if isinstance(value, Tensor):
        return not (value.is_floating_point() or value.is_complex()) or bool(torch.isfinite(value).all())
    if isinstance(value, np.ndarray):
        return bool(np.isfinite(value).all())
    if isinstance(value, (Mapping, list, tuple)):
        return all(map(_is_finite, value.values() if isinstance(value, Mapping) else value))
    return not isinstance(value, float) or isfinite(value)
