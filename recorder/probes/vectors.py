"""Norms and inner products, right for any magnitude and any length."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt
from typing import Any

import torch
from torch import Tensor

from recorder.probes.magnitudes import largest_magnitude

# Squares of values outside this range leave float32: the norm is then taken again in float64.
LOW, HIGH = 1e-15, 1e15
_LOWEST_PRODUCT = 1e-20
_WIDE = (torch.float32, torch.float64)
_BLOCK = 4096
_LONG = 65_536
_AT_ONCE = 64 * _BLOCK  # what a cache holds of their products
# Up to this many coordinates float64 costs nothing that could be measured.
_SHORT = 16_384


def norm(vector: Tensor) -> Tensor | float:
    """L2 norm of a flat vector, whatever its magnitude: a float on a CPU, 0-d float64 on a device."""
    if not vector.is_cpu:
        wide: Tensor = torch.linalg.vector_norm(vector, dtype=torch.float64)
        return wide
    if is_short(vector):
        return short_norm(vector.double())
    quick = read(wide_norm(vector))
    return quick if LOW <= quick <= HIGH else rescaled_norm(vector)


def dot(left: Tensor, right: Tensor) -> Tensor | float:
    """Inner product of two flat vectors: a float on a CPU, 0-d float64 on a device.

    On a CPU a long one is taken in float32 over blocks and in float64 over the blocks' products, or in float64 alone
    where float32 is too narrow for them. Within a block torch adds up by halves: one float32 sum over 16,384 products
    of one sign is off by 1e-5 on some CPUs.
    """
    if not left.is_cpu:
        wide: Tensor = torch.dot(left.double(), right.double())
        return wide
    if left.numel() > _SHORT:
        product = _dot_over_blocks(left, right)
        if _LOWEST_PRODUCT < abs(product) < inf:
            return product
    return short_dot(left.double(), right.double())


def _dot_over_blocks(left: Tensor, right: Tensor) -> float:
    whole = left.numel() // _BLOCK * _BLOCK
    pairs = zip(torch.split(left[:whole], _AT_ONCE), torch.split(right[:whole], _AT_ONCE), strict=True)
    # Not by vecdot, which autocast would take in fp16.
    blocks = [torch.mul(a, b).view(-1, _BLOCK).sum(dim=1) for a, b in pairs]
    rest = short_dot(left[whole:].double(), right[whole:].double())
    return read(torch.cat(blocks).sum(dtype=torch.float64)) + rest


def is_short(vector: Tensor) -> bool:
    """Whether `norm` and `dot` take a vector on the CPU in float64 as a whole."""
    return vector.numel() <= _SHORT and vector.dtype is torch.float32 and vector.is_cpu


def short_norm(wide: Tensor) -> float:
    """`norm` of a short vector that is in float64 already."""
    return sqrt(short_dot(wide, wide))


def short_dot(left: Tensor, right: Tensor) -> float:
    """`dot` of two vectors that are in float64 already.

    By torch: numpy's BLAS has threads of its own, on every core, whatever the process asked for.
    """
    product: Any = torch.dot(left, right).tolist()
    return float(product)


def tensor_norms(tensors: Sequence[Tensor]) -> list[Tensor]:
    """0-d each, in float32 or wider."""
    short = [t for t in tensors if t.dtype in _WIDE and (t.numel() <= _LONG or not t.is_cpu)]
    quick = torch._foreach_norm(short) if short else ()
    if len(short) == len(tensors):
        return list(quick)
    found = dict(zip(map(id, short), quick, strict=True))
    return [found[id(t)] if id(t) in found else wide_norm(t) for t in tensors]


def wide_norm(tensor: Tensor) -> Tensor:
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


def rescaled_norm(tensor: Tensor) -> float:
    """L2 norm of what float32, or even float64, cannot square; on the host."""
    wide = tensor.detach().reshape(-1).double()
    largest = read(largest_magnitude(wide)) if wide.numel() else 0.0
    if not 0.0 < largest < inf:
        return largest
    return read(torch.linalg.vector_norm(wide / largest)) * largest


def read(scalar: Tensor) -> float:
    """The number of a 0-d tensor on the CPU, as it lies there: no operation that a device would be waited for."""
    found: Any = scalar.tolist()
    return float(found)


def _needs_blocks(tensor: Tensor) -> bool:
    # Devices reduce in a tree, which is exact enough.
    return tensor.numel() > _LONG and tensor.is_cpu
