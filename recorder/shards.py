"""What this process holds of a model that several train: which gradients are whose, and sums over all shares.

Nothing of `torch.distributed.tensor` is imported: where one of its tensors exists, it has been.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

# Over the gradients, or parameters, of all processes; or what one has for itself: its share, or what is not reduced.
LOCAL, GLOBAL = "local", "global"
PLAIN = (Tensor, torch.nn.Parameter)


def share(tensor: Tensor) -> Tensor:
    """What this process holds of a tensor: the tensor itself, unless it is a DTensor."""
    if _is_plain(tensor):
        return tensor
    held: Tensor = tensor.to_local()  # type: ignore[attr-defined]  # it is a DTensor
    return held


def in_full(value: Tensor) -> Tensor:
    """The value of a DTensor that each process has. Raises TypeError where it would take an exchange to read it."""
    if _groups(value):
        raise TypeError("a DTensor that is spread over processes was given: pass its full_tensor(); not recorded")
    return share(value)


def scope(tensors: Iterable[Tensor]) -> str | None:
    """LOCAL where one of them is spread over processes, GLOBAL where all are DTensors that are not, None else."""
    given = list(tensors)
    if any(map(_groups, given)):
        return LOCAL
    return None if any(map(_is_plain, given)) else GLOBAL


def summed(values: Tensor, tensors: Sequence[Tensor]) -> Tensor:
    """[P, n] float64, added up over the processes that hold other shares of the P tensors: one exchange a mesh.

    Collective: each of those processes must call it with its own values of the same tensors.
    """
    places: dict[tuple[Any, ...], list[int]] = {}
    for place, tensor in enumerate(tensors):
        places.setdefault(_groups(tensor), []).append(place)
    for groups, those in places.items():
        alone = len(places) == 1  # as nearly always: a list of places would have to go to the device
        part = values if alone else values[those]
        for group in groups:
            torch.distributed.all_reduce(part, group=group)
        if not alone:
            values[those] = part
    return values


def reduction(model: torch.nn.Module) -> Callable[[], str | None]:
    """A function that says, after a backward, of whom the gradients in a model's plain parameters are.

    None where several processes train and nothing that is known here reduces gradients: a loop may do it by hand.
    """
    wrapped = [m for m in model.modules() if isinstance(m, DistributedDataParallel)]
    if not _are_several():
        return lambda: GLOBAL
    if any(type(m).__name__ == "FullyShardedDataParallel" for m in model.modules()):
        return lambda: LOCAL  # FSDP1 keeps its shares in plain tensors
    if not wrapped:
        return lambda: None
    # A forward within no_sync() leaves it off, the next forward that a reduction follows turns it on.
    return lambda: GLOBAL if all(m.require_forward_param_sync for m in wrapped) else LOCAL


def _is_plain(tensor: Tensor) -> bool:
    return type(tensor) in PLAIN or not hasattr(tensor, "placements")


def _groups(tensor: Tensor) -> tuple[Any, ...]:
    """The process groups over which a tensor is spread, or is a sum that was not taken yet."""
    if _is_plain(tensor):
        return ()
    mesh, placements = tensor.device_mesh, tensor.placements  # type: ignore[attr-defined]  # it is a DTensor
    spread = (at for at, place in enumerate(placements) if not place.is_replicate() and mesh.size(at) > 1)
    return tuple(mesh.get_group(at) for at in spread)


def _are_several() -> bool:
    distributed = torch.distributed
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1
