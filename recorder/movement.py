"""How far, and in which direction, a step moved the parameters: the update columns."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, gcd

import torch
from torch import Tensor

from recorder.probes import Parameter, Vector, dense_gradients, dot, is_short, norm, short_dot, short_norm, ungraded
from recorder.shards import PLAIN, share

SAMPLE_LIMIT = 262_144


class Movement:
    """Keeps the parameters and the gradient of one step, on all coordinates or on a sample of them.

    Of parameters that are spread over processes it is this one's share that it keeps and measures.

    A sample takes the small tensors whole, up to half of `limit`, and every `stride`-th coordinate of the others, which
    then stands for `stride` of them. `theta` must be called right before the step, `gradient` while the gradient is
    unclipped, `measure` right after the step. The buffers are reused from step to step.
    """

    def __init__(self, parameters: Sequence[Parameter], limit: int | None = SAMPLE_LIMIT) -> None:
        self._given = parameters
        by_size = sorted(parameters, key=lambda p: coordinates(p.tensor))
        whole = _count_whole(by_size, limit)
        self.parameters = by_size
        self._tensors = [p.tensor for p in by_size]
        counts = [coordinates(t) for t in self._tensors]
        self._whole = sum(counts[:whole])
        rest = counts[whole:]
        self.stride = _coprime(ceil(sum(rest) / (limit - self._whole)), rest) if limit is not None and rest else 1
        self.is_exact = self.stride == 1
        self._strides = [1] * whole + [self.stride] * (len(counts) - whole)
        self._sizes = [ceil(count / stride) for count, stride in zip(counts, self._strides, strict=True)]
        self._dtypes = [t.dtype for t in self._tensors]
        self._are_plain = all(type(t) in PLAIN and not t.is_complex() for t in self._tensors)
        wide = any(dtype in (torch.float64, torch.complex128) for dtype in self._dtypes)
        device = self._tensors[0].device if self._tensors else torch.device("cpu")
        # Buffers made under inference mode could not be written to outside it.
        with torch.inference_mode(False):
            dtype = torch.float64 if wide else torch.float32
            self._theta, self._gradient = torch.zeros(2, sum(self._sizes), dtype=dtype, device=device)
            self._is_short = self.is_exact and is_short(self._theta)
            if self._is_short:  # then every product is taken in float64, and the gradient can lie there in it
                self._gradient = self._gradient.double()
        self._into_theta, self._into_gradient = self._places(self._theta), self._places(self._gradient)
        self._before: Tensor | float = 0.0
        self._norms_before: list[Tensor | float] = []
        self._norms_moved: list[Tensor | float] = []
        self._has_gradient = False

    def covers(self, parameters: Sequence[Parameter]) -> bool:
        """Whether these are still the parameters the buffers were made for."""
        return parameters is self._given and [t.dtype for t in self._tensors] == self._dtypes

    @ungraded
    def gradient(self) -> None:
        """Keep the gradient as it is before clipping; a parameter without one counts as zero."""
        if self._tensors:
            torch._foreach_copy_(self._into_gradient, self._pieces(dense_gradients(self._tensors)))
        self._has_gradient = True

    @ungraded
    def theta(self, detailed: bool = False) -> None:
        """Keep the parameters as they are before the step, and with `detailed` the norm of each for `tensor_norms`."""
        if self._tensors:
            torch._foreach_copy_(self._into_theta, self._pieces(self._tensors))
        self._norms_before = self._norms() if detailed else []
        self._before = self._square(self._widened(self._theta), self._norms_before)

    @ungraded
    def measure(self) -> Vector:
        """[4], float64: d.d, theta.theta, d.g, g.g of the change d, the parameters before it and the gradient g.

        Those with g are 0 where no gradient was kept. A sample's products are scaled up to all coordinates.
        """
        if not self._has_gradient:
            self._gradient.zero_()
        self._has_gradient = False
        if self._tensors:
            # What lies there from now on is the change with its sign turned.
            torch._foreach_sub_(self._into_theta, self._pieces(self._tensors))
        self._norms_moved = self._norms() if self._norms_before else []
        change = self._widened(self._theta)
        moved, slope = self._square(change, self._norms_moved), self._square(self._gradient)
        return _joined([moved, self._before, -self._dot(change, self._gradient), slope])

    def tensor_norms(self) -> tuple[Vector, Vector]:
        """[Q] each, in the order of `parameters`: norms of the last measured change, and of what it changed.

        Only after a `theta` that was `detailed`.
        """
        return _joined(self._norms_moved), _joined(self._norms_before)

    def _norms(self) -> list[Tensor | float]:
        return [norm(part) for part in torch.split(self._theta, self._sizes)]

    @property
    def _parts(self) -> tuple[slice, slice]:
        """The coordinates that stand for themselves, and those that stand for `stride` of them."""
        return slice(0, self._whole), slice(self._whole, None)

    def _widened(self, vector: Tensor) -> Tensor:
        """A vector as `_square` and `_dot` take it, so that it is widened once for both."""
        return vector.double() if self._is_short else vector

    def _square(self, vector: Tensor, norms: Sequence[Tensor | float] = ()) -> Tensor | float:
        """The squared norm of a vector, from the norms of its tensors where they are known."""
        if self.is_exact and norms:
            return sum(n**2 for n in norms)
        if self.is_exact:
            return (short_norm(vector) if self._is_short else norm(vector)) ** 2
        whole, rest = (norm(vector[part]) ** 2 for part in self._parts)
        return whole + self.stride * rest

    def _dot(self, left: Tensor, right: Tensor) -> Tensor | float:
        if self.is_exact:
            return short_dot(left, right) if self._is_short else dot(left, right)
        whole, rest = (dot(left[part], right[part]) for part in self._parts)
        return whole + self.stride * rest

    def _pieces(self, tensors: list[Tensor]) -> list[Tensor]:
        if self._are_plain and self.is_exact:
            return tensors
        tensors = [share(t) for t in tensors]
        if self.is_exact:
            return [torch.view_as_real(t) if t.is_complex() else t for t in tensors]
        return [_flat(t) if s == 1 else _flat(t)[::s] for t, s in zip(tensors, self._strides, strict=True)]

    def _places(self, vector: Tensor) -> list[Tensor]:
        """Where each tensor goes: in its own shape where it is taken whole, so that it needs no flat view."""
        parts = torch.split(vector, self._sizes)
        if not self.is_exact:
            return list(parts)
        held = [share(t) for t in self._tensors]
        shapes = [(*t.shape, 2) if t.is_complex() else t.shape for t in held]
        return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def _count_whole(by_size: Sequence[Parameter], limit: int | None) -> int:
    """How many of the smallest tensors are taken whole: all that fit, else those that fit into half of the limit."""
    counts = [coordinates(p.tensor) for p in by_size]
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


def _joined(values: Sequence[Tensor | float]) -> Vector:
    """Host numbers as a list, a device's as one tensor of float64."""
    tensors = [value.double() for value in values if isinstance(value, Tensor)]
    return torch.stack(tensors) if tensors else [value for value in values if not isinstance(value, Tensor)]


def coordinates(tensor: Tensor) -> int:
    """Real numbers that this process holds of a tensor: two for a complex one."""
    tensor = share(tensor.detach())
    return tensor.numel() * (2 if tensor.is_complex() else 1)


def _flat(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).reshape(-1)
