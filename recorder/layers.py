"""The layers table of a deep row: every parameter's gradient, and its movement where the row moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from recorder.movement import Movement
from recorder.probes import GradientNorms, Parameter, values_of
from recorder.readings import Numbers


@dataclass(slots=True)
class Layers:
    """Readings of one deep row: gradients [P], over chosen parameters that have one, and movement [Q], over all chosen.

    `places` are the indices of the P among `gradient.parameters`.
    """

    gradient: GradientNorms
    places: Sequence[int]
    absmax: Tensor
    nonfinite: Tensor
    moving: Sequence[Parameter] = ()
    param_norm: Tensor | None = None
    change_norm: Tensor | None = None

    def readings(self) -> dict[str, Tensor | None]:
        return {
            "layers_absmax": self.absmax,
            "layers_nonfinite": self.nonfinite,
            "layers_param_norm": self.param_norm,
            "layers_change_norm": self.change_norm,
        }

    def observe_movement(self, movement: Movement) -> None:
        """Take each parameter's movement from buffers that hold all its coordinates."""
        if movement.is_exact and movement.parameters:
            change, before = movement.tensor_norms()
            self.moving, self.param_norm, self.change_norm = movement.parameters, before, change

    def rows(
        self, row: int, optimizer: str, numbers: Mapping[str, Numbers], scale: float | None
    ) -> list[dict[str, Any]]:
        """Rows of the layers table, one a parameter. `scale` is what the gradients were still multiplied by."""
        factor = 1.0 / (scale or 1.0)
        table: dict[str, dict[str, Any]] = {}
        for index, place in enumerate(self.places):
            table[self.gradient.parameters[place].name] = {
                "grad_norm": float(numbers["norms"][place]) * factor,
                "grad_absmax": float(numbers["layers_absmax"][index]) * factor,
                "grad_nonfinite": int(numbers["layers_nonfinite"][index]),
            }
        for index, parameter in enumerate(self.moving):
            before = float(numbers["layers_param_norm"][index])
            change = float(numbers["layers_change_norm"][index])
            ratio = change / before if before else (float("inf") if change else 0.0)
            table.setdefault(parameter.name, {}).update(param_norm=before, update_ratio=ratio)
        return [{"row": row, "optimizer": optimizer, "name": name, **values} for name, values in table.items()]


@torch.no_grad()
def layer_gradients(gradient: GradientNorms, chosen: Callable[[Parameter], bool]) -> Layers:
    """Largest magnitude and count of non-finite numbers of the chosen gradients, while they are unclipped."""
    places = [index for index, parameter in enumerate(gradient.parameters) if chosen(parameter)]
    gradients = [gradient.parameters[index].tensor.grad for index in places]
    values = [values_of(g) for g in gradients if g is not None]
    if not values:
        return Layers(gradient, [], torch.zeros(0), torch.zeros(0))
    device = gradient.norms.device
    absmax = [n.to(device, torch.float64) for n in torch._foreach_norm(values, float("inf"))]
    # Looking at every number costs many times the norm, so on a CPU it is done only where there is one to count.
    wanted = gradient.nonfinite.tolist() if device.type == "cpu" else [1.0] * len(gradient.parameters)
    none = torch.zeros((), dtype=torch.int64, device=device)
    nonfinite = [
        (~torch.isfinite(v)).sum().to(device) if wanted[place] else none
        for v, place in zip(values, places, strict=True)
    ]
    return Layers(gradient, places, torch.stack(absmax), torch.stack(nonfinite))
