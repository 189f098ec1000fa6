"""The layers table of a deep row: every parameter's gradient, and its movement where the row moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from recorder.movement import Movement, coordinates
from recorder.probes import GradientNorms, Parameter, Vector, largest_magnitude, values_of
from recorder.readings import number


@dataclass(slots=True)
class Layers:
    """Readings of one deep row: gradients [P], over chosen parameters that have one, and movement [Q], over all chosen.

    `places` are the indices of the P among `gradient.parameters`.
    """

    gradient: GradientNorms
    places: Sequence[int]
    absmax: Vector
    nonfinite: Vector
    moving: Sequence[Parameter] = ()
    param_norm: Vector | None = None
    change_norm: Vector | None = None

    def readings(self) -> dict[str, Vector | None]:
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

    def rows(self, row: int, optimizer: str, numbers: Mapping[str, Any], scale: float | None) -> list[dict[str, Any]]:
        """Rows of the layers table, one a parameter. `scale` is what the gradients were still multiplied by.

        `numbers` holds the readings that were tensors, and the gradient's norms under "norms".
        """
        factor = 1.0 / (scale or 1.0)
        found = {**self.readings(), **numbers}
        table: dict[str, dict[str, Any]] = {}
        gradients = zip(self.places, found["layers_absmax"], found["layers_nonfinite"], strict=True)
        for place, absmax, nonfinite in gradients:
            parameter = self.gradient.parameters[place]
            table[parameter.name] = {
                "grad_norm": found["norms"][place] * factor,
                "grad_absmax": absmax * factor,
                "grad_nonfinite": int(nonfinite),
                "grad_nonfinite_share": nonfinite / coordinates(parameter.tensor),
            }
        if self.moving:
            moved = zip(self.moving, found["layers_param_norm"], found["layers_change_norm"], strict=True)
            for parameter, before, change in moved:
                ratio = change / before if before else (float("inf") if change else 0.0)
                table.setdefault(parameter.name, {}).update(param_norm=before, update_ratio=ratio)
        return [{"row": row, "optimizer": optimizer, "name": name, **values} for name, values in table.items()]


@torch.no_grad()
def layer_gradients(gradient: GradientNorms, chosen: Callable[[Parameter], bool]) -> Layers:
    """Largest magnitude and count of non-finite numbers of the chosen gradients, while they are unclipped.

    Of gradients that are spread over processes those of this one's share, if there is a number in it.
    """
    held = [None if p.tensor.grad is None else values_of(p.tensor.grad) for p in gradient.parameters]
    found = {at: v for at, v in enumerate(held) if v is not None and v.numel() and chosen(gradient.parameters[at])}
    places, values = list(found), list(found.values())
    if not values:
        return Layers(gradient, [], [], [])
    if not isinstance(gradient.norms, Tensor):
        # Looking at every number costs many times the norm, so on a CPU it is done only where there is one to count.
        bad = [gradient.nonfinite[place] for place in places]
        counts = [number(_count(v)) if flag else 0.0 for v, flag in zip(values, bad, strict=True)]
        return Layers(gradient, places, [number(largest_magnitude(v)) for v in values], counts)
    device = gradient.norms.device
    return Layers(
        gradient,
        places,
        torch.stack([n.to(device, torch.float64) for n in torch._foreach_norm(values, float("inf"))]),
        torch.stack([_count(v).to(device) for v in values]),
    )


def _count(values: Tensor) -> Tensor:
    """How many are not finite, 0-d."""
    return (~torch.isfinite(values)).sum()
