"""From tensors to host numbers: at once on the CPU, in one copy per flush elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recorder.shards import PLAIN, in_full

# A scalar comes as a float, anything else flattened.
Number: TypeAlias = float | list[float]

# What numpy holds as it is; float16 would do, bfloat16 it does not know.
_NUMPY = (torch.float32, torch.float64)


def fetch(tensors: Sequence[Tensor]) -> list[Number]:
    """The numbers of each tensor.

    Tensors on the CPU are read through numpy; all others are joined on their device and copied once.
    """
    fetched: list[Number] = [0.0] * len(tensors)
    by_device: dict[torch.device, list[int]] = {}
    for index, tensor in enumerate(tensors):
        if tensor.is_cpu:
            fetched[index] = _plain(_host(tensor), tensor)
        else:
            by_device.setdefault(tensor.device, []).append(index)
    for indices in by_device.values():
        joined = torch.cat([tensors[i].detach().double().reshape(-1) for i in indices]).cpu().numpy()
        ends = np.cumsum([tensors[i].numel() for i in indices])
        for index, part in zip(indices, np.split(joined, ends[:-1]), strict=True):
            fetched[index] = _plain(part, tensors[index])
    return fetched


def fetch_named(readings: Mapping[str, Tensor]) -> dict[str, Number]:
    """The same, by name."""
    return dict(zip(readings, fetch(list(readings.values())), strict=True)) if readings else {}


def number(value: Any) -> float:
    """One host number from a Python number or a tensor of one element that is on the host."""
    if not isinstance(value, Tensor):
        return float(value)
    if not value.is_cpu:
        return float(value.detach().double().cpu().numpy().item())
    # As it lies there: no operation, which would have to be detached first.
    found: Any = value.tolist() if value.dim() == 0 else _host(value).item()
    return float(found)


def number_or_copy(value: Tensor | float) -> Tensor | float:
    """A number where the host has it, else a detached copy: the loop may change its tensor before it is read."""
    if not isinstance(value, Tensor):
        return number(value)
    if type(value) not in PLAIN:
        value = in_full(value)
    return number(value) if value.is_cpu else value.detach().clone().reshape(())


def _plain(values: NDArray[Any], tensor: Tensor) -> Number:
    found: Number = values.reshape(tensor.shape if tensor.dim() == 0 else -1).tolist()
    return found


def _host(tensor: Tensor) -> NDArray[Any]:
    plain = tensor.detach() if tensor.requires_grad else tensor
    return (plain if plain.dtype in _NUMPY else plain.double()).numpy()
