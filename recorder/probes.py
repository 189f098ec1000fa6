"""One small function per measured quantity. None reads a value back to the host, save on the CPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

import torch
from torch import Tensor

# Squares of values outside this range leave float32: the norm is then taken again in float64.
_SAFE_NORM = (1e-15, 1e15)
_WIDE = (torch.float32, torch.float64)
_BLOCK = 4096
_LONG = 65_536


@dataclass(frozen=True, slots=True)
class Parameter:
    """A trainable parameter under its name, with the group it belongs to."""

    name: str
    group: str
    tensor: Tensor


@dataclass(frozen=True, slots=True)
class GradientNorms:
    """Norms of the gradients that exist, each [P] in float64 on the gradients' device.

    `scaled_by` is the factor the gradients were still multiplied by, None where they were in true units.
    """

    norms: Tensor
    nonfinite: Tensor
    parameters: Sequence[Parameter]
    none_count: int
    scaled_by: Tensor | float | None = None


def values_of(gradient: Tensor) -> Tensor:
    """A gradient's numbers as a plain real tensor: sparse ones summed over duplicates, complex ones as pairs."""
    gradient = gradient.detach()
    if gradient.is_sparse:
        gradient = gradient.coalesce().values()
    return torch.view_as_real(gradient) if gradient.is_complex() else gradient


@torch.no_grad()
def gradient_norms(parameters: Sequence[Parameter], scaled_by: Tensor | float | None = None) -> GradientNorms:
    """L2 norm and finite flag of every gradient there is.

    The norm is taken in float32, and again in float64 for tensors whose norm leaves float32's range. The flags come
    from the gradients themselves: a norm of Inf does not mean that any of them is non-finite.
    """
    present = [p for p in parameters if p.tensor.grad is not None and p.tensor.numel()]
    gradients = [values_of(p.tensor.grad) for p in present if p.tensor.grad is not None]
    missing = sum(p.tensor.grad is None and p.tensor.requires_grad for p in parameters)
    if not gradients:
        empty = torch.zeros(0, dtype=torch.float64)
        return GradientNorms(empty, empty, present, missing, scaled_by)
    norms = _norms(gradients)
    nonfinite = torch.zeros_like(norms)
    if norms.device.type == "cpu":
        _settle_on_host(gradients, norms, nonfinite)
    else:
        # The host must not be asked, so the flag is taken from the largest magnitude, which cannot overflow.
        largest = torch.stack([n.to(norms.device) for n in torch._foreach_norm(gradients, float("inf"))])
        nonfinite = (~torch.isfinite(largest)).double()
    return GradientNorms(norms, nonfinite, present, missing, scaled_by)


def _norms(gradients: list[Tensor]) -> Tensor:
    small = [i for i, g in enumerate(gradients) if g.dtype in _WIDE and not _needs_blocks(g)]
    norms = dict(zip(small, torch._foreach_norm([gradients[i] for i in small]), strict=True)) if small else {}
    for index, gradient in enumerate(gradients):
        if index not in norms:
            norms[index] = _wide_norm(gradient)
    device = norms[0].device
    return torch.stack([norms[i].to(device, torch.float64) for i in range(len(gradients))])


def _wide_norm(tensor: Tensor) -> Tensor:
    """L2 norm, 0-d, in float32 over blocks and in float64 over the blocks' norms.

    A single float32 sum over ten million squares is off by up to 0.8 % on a CPU; over blocks it is off by 1e-6, at the
    same cost. A sum of squares of fp16 or bf16 values needs a wider type than theirs in any case.
    """
    dtype = tensor.dtype if tensor.dtype in _WIDE else torch.float32
    if not _needs_blocks(tensor):
        short: Tensor = torch.linalg.vector_norm(tensor, dtype=dtype)
        return short
    flat = tensor.reshape(-1)
    whole = flat.numel() // _BLOCK * _BLOCK
    blocks = torch.linalg.vector_norm(flat[:whole].view(-1, _BLOCK), dim=1, dtype=dtype)
    rest = torch.linalg.vector_norm(flat[whole:], dtype=dtype)
    total: Tensor = torch.linalg.vector_norm(torch.cat([blocks, rest[None]]), dtype=torch.float64)
    return total


def _needs_blocks(tensor: Tensor) -> bool:
    # Devices reduce in a tree, which is exact enough.
    return tensor.numel() > _LONG and tensor.device.type == "cpu"


def _settle_on_host(gradients: list[Tensor], norms: Tensor, nonfinite: Tensor) -> None:
    for index in [i for i, norm in enumerate(norms.tolist()) if not _is_safe(norm)]:
        finite = bool(torch.isfinite(gradients[index]).all().numpy())
        nonfinite[index] = float(not finite)
        norms[index] = _rescaled_norm(gradients[index])


def _is_safe(norm: float) -> bool:
    low, high = _SAFE_NORM
    return low <= norm <= high


def _rescaled_norm(tensor: Tensor) -> Tensor:
    """L2 norm as 0-d float64 of what float32, or even float64, cannot square."""
    wide = tensor.reshape(-1).double()
    largest = wide.abs().max() if wide.numel() else wide.sum()
    usable = torch.isfinite(largest) & (largest > 0)
    scale = torch.where(usable, largest, torch.ones_like(largest))
    norm: Tensor = torch.linalg.vector_norm(wide / scale) * scale
    return norm


def total_norm(norms: GradientNorms) -> Tensor:
    """L2 norm over all gradients, 0-d float64, still multiplied by `scaled_by`."""
    total: Tensor = torch.linalg.vector_norm(norms.norms)
    if total.device.type == "cpu" and not isfinite(float(total.numpy())):
        return _rescaled_norm(norms.norms)
    return total


@torch.no_grad()
def clip_finite_(norms: GradientNorms, total: Tensor, max_norm: float) -> None:
    """Scale the gradients to `max_norm` in place, only where all of them are finite.

    Same factor as `torch.nn.utils.clip_grads_with_norm_`: min(1, max_norm / (total + 1e-6)). A non-finite gradient is
    left as it was: it is the evidence, and scaling would turn Inf into NaN and every healthy gradient into zero.
    """
    gradients = [p.tensor.grad for p in norms.parameters if p.tensor.grad is not None]
    if not gradients:
        return
    if total.device.type == "cpu":
        norm = float(total.numpy())
        factor = max_norm / (norm + 1e-6)
        if isfinite(norm) and factor < 1.0 and not norms.nonfinite.numpy().any():
            torch._foreach_mul_(gradients, factor)
        return
    coefficient = torch.clamp(max_norm / (total + 1e-6), max=1.0)
    usable = (norms.nonfinite.sum() == 0) & torch.isfinite(total)
    coefficient = torch.where(usable, coefficient, torch.ones_like(coefficient)).float()
    for device in {g.device for g in gradients}:
        here = [g for g in gradients if g.device == device]
        torch._foreach_mul_(here, coefficient.to(device))


def norm(vector: Tensor) -> Tensor:
    """L2 norm of a flat vector as 0-d float64, whatever its magnitude."""
    if vector.device.type != "cpu":
        wide: Tensor = torch.linalg.vector_norm(vector, dtype=torch.float64)
        return wide
    quick = _wide_norm(vector).double()
    return quick if _is_safe(float(quick.numpy())) else _rescaled_norm(vector)


def dot(left: Tensor, right: Tensor) -> Tensor:
    """Inner product of two flat vectors as 0-d float64, in float64 over blocks."""
    if left.device.type == "cpu" and left.dtype is not torch.float64:
        whole = left.numel() // _BLOCK * _BLOCK
        with torch.autocast("cpu", enabled=False):
            blocks = torch.bmm(left[:whole].view(-1, 1, _BLOCK), right[:whole].view(-1, _BLOCK, 1))
        product = blocks.sum(dtype=torch.float64) + torch.dot(left[whole:], right[whole:])
        if bool(torch.isfinite(product).numpy()):
            return product
    return torch.dot(left.double(), right.double())


def loss_quantiles(per_example: Tensor) -> Tensor:
    """Median, 99th percentile and maximum of the per-example losses: [3], float32 or wider.

    The two quantiles of more than 65,536 losses are those of an even sample of them; the maximum is of all.
    """
    flat = per_example.detach().flatten()
    flat = flat if flat.dtype is torch.float64 else flat.float()
    sample = flat[:: -(-flat.numel() // _LONG)]
    return torch.stack([torch.quantile(sample, 0.5), torch.quantile(sample, 0.99), flat.max()])


def absmax(tensors: Iterable[Tensor]) -> Tensor | None:
    """Largest magnitude in any of the floating tensors, 0-d float64; NaN where one holds a NaN; None without any.

    Only plain tensors are looked at: not sparse, nested, meta or narrower than 16 bits, not a subclass, and not inside
    one of torch's function transforms, where a value would not outlive the transform.
    """
    largest = [torch.linalg.vector_norm(t.detach(), float("inf")).double() for t in tensors if _is_plain(t)]
    if not largest:
        return None
    return torch.stack([value.to(largest[0].device) for value in largest]).max()


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
