"""Norm and finite flag of every gradient, and what they come to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import hypot
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from recorder.probes.ungraded import ungraded
from recorder.probes.vectors import HIGH, LOW, read, rescaled_norm, tensor_norms
from recorder.shards import share, summed

Vector: TypeAlias = Tensor | list[float]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A trainable parameter under its name, with the group it belongs to."""

    name: str
    group: str
    tensor: Tensor


class GradientNorms(NamedTuple):
    """Norm and finite flag of each gradient that exists, [P]: floats on a CPU, float64 on the gradients' device else.

    `scaled_by` is the factor the gradients were still multiplied by, None where they were in true units.
    """

    norms: Vector
    nonfinite: Vector
    parameters: Sequence[Parameter]
    none_count: int
    scaled_by: Tensor | float | None = None


def values_of(gradient: Tensor) -> Tensor:
    """A gradient's numbers as a plain real tensor: sparse ones summed over duplicates, complex ones as pairs.

    Of one that is spread over processes, those that this process holds.
    """
    if type(gradient) is Tensor and gradient.dtype is torch.float32 and not gradient.is_sparse:
        return gradient  # as nearly always
    gradient = share(gradient)
    if gradient.is_sparse:
        gradient = gradient.coalesce().values()
    return torch.view_as_real(gradient) if gradient.is_complex() else gradient


def dense_gradients(parameters: Sequence[Tensor]) -> list[Tensor]:
    """Each parameter's gradient in the parameter's own form: zeros where there is none, sparse ones spread out."""
    gradients = [p.grad for p in parameters]
    pairs = zip(gradients, parameters, strict=True)
    return [g if type(g) is Tensor and not g.is_sparse else _dense(g, p) for g, p in pairs]


def _dense(gradient: Tensor | None, parameter: Tensor) -> Tensor:
    if gradient is None:
        return torch.zeros_like(share(parameter))
    gradient = share(gradient)
    return gradient.to_dense() if gradient.is_sparse else gradient


@ungraded
def gradient_norms(parameters: Sequence[Parameter], scaled_by: Tensor | float | None = None) -> GradientNorms:
    """L2 norm and finite flag of every gradient there is.

    The norm is taken in float32, and again in float64 for tensors whose norm leaves float32's range. The flags come
    from the gradients themselves: a norm of Inf does not mean that any of them is non-finite. Of gradients that are
    spread over processes they tell this one's share; `over_all_shares` gives the whole.
    """
    found, gradients, missing = [], [], 0
    for parameter in parameters:
        gradient = parameter.tensor.grad
        if gradient is None:
            missing += parameter.tensor.requires_grad
        elif gradient.numel():
            found.append(parameter)
            gradients.append(values_of(gradient))
    present = parameters if len(found) == len(parameters) else found  # nearly always the same from row to row
    elsewhere = [g for g in gradients if not g.is_cpu]
    if not elsewhere:
        return GradientNorms(*_settled_on_host(gradients), present, missing, scaled_by)
    device = elsewhere[0].device
    norms = torch.stack([norm.to(device, torch.float64) for norm in tensor_norms(gradients)])
    # The host must not be asked, so the flag is taken from the largest magnitude, which cannot overflow.
    held = [g if g.numel() else g.new_zeros(1) for g in gradients]
    largest = torch.stack([n.to(device) for n in torch._foreach_norm(held, float("inf"))])
    return GradientNorms(norms, (~torch.isfinite(largest)).double(), present, missing, scaled_by)


def over_all_shares(measured: GradientNorms, parameters: Sequence[Parameter]) -> GradientNorms:
    """The same over the shares of all processes. Collective, as `shards.summed`, over all `parameters`.

    They are the same on every process, while a gradient may be missing on some of them.
    """
    norms, flags = (torch.as_tensor(v, dtype=torch.float64) for v in (measured.norms, measured.nonfinite))
    own = torch.stack([norms.square(), flags], dim=1)
    present = {id(parameter) for parameter in measured.parameters}
    places = [place for place, parameter in enumerate(parameters) if id(parameter) in present]
    if len(places) == len(parameters):
        found = summed(own, [parameter.tensor for parameter in parameters])
    else:
        every = norms.new_zeros(len(parameters), 2)
        every[places] = own
        found = summed(every, [parameter.tensor for parameter in parameters])[places]
    squares, counts = found.unbind(1)
    norms, flags = squares.sqrt(), (counts > 0).double()
    if isinstance(measured.norms, Tensor):
        return measured._replace(norms=norms, nonfinite=flags)
    return measured._replace(norms=norms.tolist(), nonfinite=flags.tolist())


def _settled_on_host(gradients: list[Tensor]) -> tuple[list[float], list[float]]:
    norms: list[Any] = [norm.tolist() for norm in tensor_norms(gradients)]
    nonfinite = [0.0] * len(norms)
    for index in [index for index, norm in enumerate(norms) if not LOW <= norm <= HIGH]:
        nonfinite[index] = float(not read(torch.isfinite(gradients[index]).all()))
        norms[index] = rescaled_norm(gradients[index])
    return norms, nonfinite


def total_norm(gradient: GradientNorms) -> Tensor | float:
    """L2 norm over all gradients, still multiplied by `scaled_by`: a float on a CPU, 0-d float64 on a device."""
    if not isinstance(gradient.norms, Tensor):
        return total_of(gradient.norms, gradient.nonfinite)
    total: Tensor = torch.linalg.vector_norm(gradient.norms)
    return total


def total_of(norms: Sequence[float], nonfinite: Iterable[float]) -> float:
    """L2 norm over tensors of these norms, of which some may hold non-finite numbers."""
    # hypot neither overflows nor underflows, but prefers Inf to NaN where there are both.
    return float(sum(norms)) if any(nonfinite) else hypot(*norms)
