"""How far, and in which direction, a step moved the parameters: the update columns."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, gcd
from operator import is_

import torch
from torch import Tensor

from recorder.probes import Parameter, dot, norm

SAMPLE_LIMIT = 262_144
# Up to this many coordinates float64 costs nothing that could be measured.
_WIDE_LIMIT = 16_384


class Movement:
    """Keeps the parameters and the gradient of one step, on all coordinates or on a sample of them.

    A sample takes the small tensors whole, up to half of `limit`, and every `stride`-th coordinate of the others, which
    then stands for `stride` of them. `theta` must be called right before the step, `gradient` while the gradient is
    unclipped, `measure` right after the step. The buffers are reused from step to step.
    """

    def __init__(self, parameters: Sequence[Parameter], limit: int | None = SAMPLE_LIMIT) -> None:
        self._given = parameters
        by_size = sorted(parameters, key=lambda p: _coordinates(p.tensor))
        whole = _count_whole(by_size, limit)
        self.parameters = by_size
        self._tensors = [p.tensor for p in by_size]
        counts = [_coordinates(t) for t in self._tensors]
        self._whole = sum(counts[:whole])
        rest = counts[whole:]
        self.stride = _coprime(ceil(sum(rest) / (limit - self._whole)), rest) if limit is not None and rest else 1
        self._strides = [1] * whole + [self.stride] * (len(counts) - whole)
        self._sizes = [ceil(count / stride) for count, stride in zip(counts, self._strides, strict=True)]
        self._dtypes = [t.dtype for t in self._tensors]
        self._is_small = sum(self._sizes) <= _WIDE_LIMIT
        wide = self._is_small or any(dtype in (torch.float64, torch.complex128) for dtype in self._dtypes)
        device = self._tensors[0].device if self._tensors else torch.device("cpu")
        # Buffers made under inference mode could not be written to outside it.
        with torch.inference_mode(False):
            self._vectors = torch.zeros(
                3, sum(self._sizes), dtype=torch.float64 if wide else torch.float32, device=device
            )
            self._wanted = torch.tensor([0, 4, 2, 8], device=device)
        self._change, self._theta, self._gradient = self._vectors
        self._into_change, self._into_theta, self._into_gradient = map(self._places, self._vectors)
        self.norms: tuple[Tensor, Tensor] | None = None
        self._has_gradient = False

    @property
    def is_exact(self) -> bool:
        return self.stride == 1

    def covers(self, parameters: Sequence[Parameter]) -> bool:
        """Whether these are still the parameters the buffers were made for."""
        same = len(parameters) == len(self._given) and all(map(is_, parameters, self._given))
        return same and [t.dtype for t in self._tensors] == self._dtypes

    @torch.no_grad()
    def theta(self) -> None:
        """Keep the parameters as they are before the step."""
        self._gather(self._tensors, self._into_theta)

    @torch.no_grad()
    def gradient(self) -> None:
        """Keep the gradient as it is before clipping; a parameter without one counts as zero."""
        self._gather([_dense_gradient(t) for t in self._tensors], self._into_gradient)
        self._has_gradient = True

    def forget_gradient(self) -> None:
        self._has_gradient = False

    @torch.no_grad()
    def measure(self) -> Tensor:
        """[4] float64: d.d, theta.theta, d.g, g.g of the change d, the parameters before it and the gradient g.

        Those with g are 0 where no gradient was kept. A sample's products are scaled up to all coordinates.
        """
        if not self._has_gradient:
            self._gradient.zero_()
        self._gather(self._tensors, self._into_change)
        self._change.sub_(self._theta)
        if self._is_small:
            return (self._vectors @ self._vectors.T).flatten().index_select(0, self._wanted)
        self.norms = None if not self.is_exact else self._norms_of_tensors()
        change, theta = self._change, self._theta
        squares = [s.square().sum() for s in self.norms] if self.norms else [self._square(change), self._square(theta)]
        return torch.stack([*squares, self._dot(change, self._gradient), self._square(self._gradient)])

    def tensor_norms(self) -> tuple[Tensor, Tensor]:
        """[Q] float64 each, in the order of `parameters`: norms of the last measured change, and of what it changed."""
        return self.norms or self._norms_of_tensors()

    def _norms_of_tensors(self) -> tuple[Tensor, Tensor]:
        change, theta = (torch.split(vector, self._sizes) for vector in (self._change, self._theta))
        return torch.stack([norm(t) for t in change]), torch.stack([norm(t) for t in theta])

    @property
    def _parts(self) -> tuple[slice, slice]:
        """The coordinates that stand for themselves, and those that stand for `stride` of them."""
        return slice(0, self._whole), slice(self._whole, None)

    def _square(self, vector: Tensor) -> Tensor:
        if self.is_exact:
            return norm(vector).square()
        whole, rest = (norm(vector[part]).square() for part in self._parts)
        return whole + self.stride * rest

    def _dot(self, left: Tensor, right: Tensor) -> Tensor:
        if self.is_exact:
            return dot(left, right)
        whole, rest = (dot(left[part], right[part]) for part in self._parts)
        return whole + self.stride * rest

    def _gather(self, tensors: Sequence[Tensor], into: list[Tensor]) -> None:
        if not tensors:
            return
        if self.is_exact:
            pieces = [torch.view_as_real(t) if t.is_complex() else t for t in tensors]
        else:
            pieces = [_flat(t) if s == 1 else _flat(t)[::s] for t, s in zip(tensors, self._strides, strict=True)]
        torch._foreach_copy_(into, pieces)

    def _places(self, vector: Tensor) -> list[Tensor]:
        """Where each tensor goes: in its own shape where it is taken whole, so that it needs no flat view."""
        parts = torch.split(vector, self._sizes)
        if not self.is_exact:
            return list(parts)
        shapes = [(*t.shape, 2) if t.is_complex() else t.shape for t in self._tensors]
        return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def _count_whole(by_size: Sequence[Parameter], limit: int | None) -> int:
    """How many of the smallest tensors are taken whole: all that fit, else those that fit into half of the limit."""
    counts = [_coordinates(p.tensor) for p in by_size]
    if limit is None or sum(counts) <= limit:
        return len(counts)
    taken = 0
    for index, count in enumerate(counts):
        taken += count
        if taken > limit // 2:
            return index
    return len(counts)


def _coprime(stride: int, counts: Sequence[int]) -> int:
    """The next stride that divides no tensor: one that did would keep to the same few columns of a matrix."""
    while any(gcd(stride, count) != 1 for count in counts) and stride < min(counts):
        stride += 1
    return stride


def _coordinates(tensor: Tensor) -> int:
    return tensor.numel() * (2 if tensor.is_complex() else 1)


def _flat(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).reshape(-1)


def _dense_gradient(parameter: Tensor) -> Tensor:
    gradient = parameter.grad
    if gradient is None:
        return torch.zeros_like(parameter)
    return gradient.detach().to_dense() if gradient.is_sparse else gradient.detach()
