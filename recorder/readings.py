"""From tensors to host numbers: at once on the CPU, in one copy per flush elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Numbers = NDArray[np.float64]


def is_on_host(tensors: Sequence[Tensor]) -> bool:
    """Whether reading these needs no synchronisation with a device."""
    return all(tensor.device.type == "cpu" for tensor in tensors)


def fetch(tensors: Sequence[Tensor]) -> list[Numbers]:
    """The tensors' numbers, each flattened, as float64.

    Tensors on the CPU are read through numpy; all others are joined on their device and copied once.
    """
    fetched: list[Numbers] = [np.empty(0)] * len(tensors)
    by_device: dict[torch.device, list[int]] = {}
    for index, tensor in enumerate(tensors):
        if tensor.device.type == "cpu":
            fetched[index] = _host(tensor).reshape(-1)
        else:
            by_device.setdefault(tensor.device, []).append(index)
    for indices in by_device.values():
        joined = torch.cat([tensors[i].detach().double().reshape(-1) for i in indices]).cpu().numpy()
        ends = np.cumsum([tensors[i].numel() for i in indices])
        for index, part in zip(indices, np.split(joined, ends[:-1]), strict=True):
            fetched[index] = part
    return fetched


def number(value: Any) -> float:
    """One host number from a Python number or a tensor that is on the host."""
    if not isinstance(value, Tensor):
        return float(value)
    return float(_host(value).reshape(())) if value.device.type == "cpu" else float(fetch([value])[0][0])


def _host(tensor: Tensor) -> Numbers:
    plain = tensor.detach() if tensor.requires_grad else tensor
    return (plain if plain.dtype is torch.float64 else plain.double()).numpy()
