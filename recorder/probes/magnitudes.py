"""Largest magnitudes, and the quantiles of losses."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from recorder.probes.ungraded import ungraded

# Of more losses than these an even sample is sorted.
_MANY = 65_536


def loss_quantiles(per_example: Tensor) -> Tensor:
    """Median, 99th percentile and maximum of the per-example losses: [3], float32 or wider.

    The two quantiles of more than 65,536 losses are those of an even sample of them; the maximum is of all.
    """
    flat = per_example.detach().flatten()
    flat = flat if flat.dtype is torch.float64 else flat.float()
    sample = flat[:: -(-flat.numel() // _MANY)]
    return torch.stack([torch.quantile(sample, 0.5), torch.quantile(sample, 0.99), flat.max()])


@ungraded
def absmax(tensors: Iterable[Tensor]) -> Tensor | None:
    """Largest magnitude in any of the floating tensors, 0-d float64; NaN where one holds a NaN; None without any.

    Only plain tensors are looked at: not sparse, nested, meta or narrower than 16 bits, not a subclass, and not inside
    one of torch's function transforms, where a value would not outlive the transform.
    """
    largest = [largest_magnitude(t.detach()).double() for t in tensors if _is_plain(t)]
    if len(largest) < 2:
        return largest[0] if largest else None
    return torch.stack([value.to(largest[0].device) for value in largest]).max()


def largest_magnitude(tensor: Tensor) -> Tensor:
    """0-d, NaN where one is in it. On a CPU the norm of order infinity would take thirteen times as long."""
    low, high = torch.aminmax(tensor)
    return torch.maximum(-low, high)


def _is_plain(tensor: Tensor) -> bool:
    return (
        type(tensor) in (Tensor, torch.nn.Parameter)
        and tensor.dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)
        and tensor.layout is torch.strided
        and not tensor.is_nested
        and tensor.device.type != "meta"
        and tensor.numel() > 0
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    )
