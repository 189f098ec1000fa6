"""Which parameters an optimizer may move now, under which names."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from recorder.probes import Parameter
from recorder.shards import scope


class OwnedParameters:
    """Follows the parameter groups of one optimizer: groups that are added, layers that are frozen or unfrozen.

    `names` gives the model's names by the id of the tensor; it is asked only when something has changed. `scope` is
    `shards.scope` of the parameters.
    """

    def __init__(self, optimizer: Optimizer, names: Callable[[], dict[int, str]]) -> None:
        self._optimizer = optimizer
        self._names = names
        self._seen: list[Tensor] = []
        self._parameters: list[Parameter] = []
        self.scope: str | None = None

    def now(self) -> list[Parameter]:
        """Each parameter once; the same list as before where nothing has changed.

        Frozen ones that still hold a gradient are among them: an optimizer acts on gradients, not on `requires_grad`.
        """
        groups = self._optimizer.param_groups
        moving = [p for group in groups for p in group["params"] if p.requires_grad or p.grad is not None]
        if len(moving) != len(self._seen) or not all(map(is_, moving, self._seen)):
            self._seen = moving
            self._parameters = _named(groups, self._names())
            self.scope = scope(moving)
        return self._parameters


def _named(groups: list[dict[str, Any]], names: dict[int, str]) -> list[Parameter]:
    """Each moving parameter once, with its group: the parameter group where there are several, else its module."""
    found: dict[int, Parameter] = {}
    for index, group in enumerate(groups):
        for position, tensor in enumerate(group["params"]):
            if id(tensor) in found or not (tensor.requires_grad or tensor.grad is not None):
                continue
            name = names.get(id(tensor), f"group{index}.{position}")
            label = str(group.get("name", f"group {index}")) if len(groups) > 1 else name.split(".")[0]
            found[id(tensor)] = Parameter(name, label, tensor)
    return list(found.values())
