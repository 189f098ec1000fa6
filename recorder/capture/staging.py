"""Tensors copied into memory that is kept for it, so that the training waits for one copy and for no allocation."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


class Staging:
    """Host memory for a set of named tensors, made once and filled many times."""

    def __init__(self) -> None:
        self._held: dict[str, Tensor] = {}

    def prepare(self, tensors: Mapping[str, Tensor]) -> None:
        """Make room for these, and touch it: a page that is written for the first time costs as much as the copy."""
        self._held = {name: self._held.get(name) for name in tensors if name in self._held}  # type: ignore[misc]
        for name, tensor in tensors.items():
            if not _fits(self._held.get(name), tensor):
                room = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)
                self._held[name] = room.zero_()

    @torch.no_grad()
    def copy(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors as they are now, on the host, in this memory until the next call."""
        self.prepare(tensors)
        held = {name: self._held[name] for name in tensors}
        if tensors:
            # Only CUDA is waited for below.
            at_leisure = all(tensor.is_cuda or tensor.is_cpu for tensor in tensors.values())
            torch._foreach_copy_(list(held.values()), list(tensors.values()), non_blocking=at_leisure)
        for device in {tensor.device for tensor in tensors.values() if tensor.is_cuda}:
            torch.cuda.synchronize(device)
        return held


def _fits(room: Tensor | None, tensor: Tensor) -> bool:
    return room is not None and room.shape == tensor.shape and room.dtype == tensor.dtype
