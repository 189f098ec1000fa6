"""Clipping by the norm, of what is finite."""

from __future__ import annotations

from math import isfinite

import torch
from torch import Tensor

from recorder.probes.gradients import GradientNorms
from recorder.probes.ungraded import ungraded
from recorder.shards import share


@ungraded
def clip_finite_(measured: GradientNorms, total: Tensor | float, max_norm: float) -> None:
    """Scale the gradients to `max_norm` in place, only where all of them are finite.

    Same factor as `torch.nn.utils.clip_grads_with_norm_`: min(1, max_norm / (total + 1e-6)). A non-finite gradient is
    left as it was: it is the evidence, and scaling would turn Inf into NaN and every healthy gradient into zero.
    """
    if not isinstance(total, Tensor):
        factor = max_norm / (total + 1e-6)
        if isfinite(total) and factor < 1.0 and not any(measured.nonfinite):
            gradients = _gradients(measured)
            if gradients:
                torch._foreach_mul_(gradients, factor)
        return
    gradients = _gradients(measured)
    if not gradients:
        return
    assert isinstance(measured.nonfinite, Tensor)
    coefficient = torch.clamp(max_norm / (total + 1e-6), max=1.0)
    usable = (measured.nonfinite.sum() == 0) & torch.isfinite(total)
    coefficient = torch.where(usable, coefficient, torch.ones_like(coefficient)).float()
    for device in {g.device for g in gradients}:
        here = [g for g in gradients if g.device == device]
        torch._foreach_mul_(here, coefficient.to(device))


def _gradients(measured: GradientNorms) -> list[Tensor]:
    return [share(p.tensor.grad) for p in measured.parameters if p.tensor.grad is not None]
