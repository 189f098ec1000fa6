"""What a capture holds of a loop, within the limits of its policy, and what that leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from recorder.capture.nested import split
from recorder.capture.policy import CapturePolicy
from recorder.guard import describe_error

# In the order in which they are given up where a capture would be too large.
_GIVEN_UP = ("optimizers", "earlier", "parameters", "buffers", "batch")
_MOST_NAMED = 8

States = Mapping[str, Mapping[str, Any]]


def within_limits(
    policy: CapturePolicy, model: torch.nn.Module, states: States, seen: Mapping[str, Any]
) -> tuple[Any, dict[str, Tensor], list[str]]:
    """The state as JSON and tensors, and a line for each thing left out. `seen` is what was kept before the forward."""
    contents, left_out = _contents(model, states, seen)
    count = sum(p.numel() for p in model.parameters())
    if not policy.optimizer_state:
        contents.pop("optimizers")
        left_out.append("optimizers: the policy leaves them out")
    if count > policy.max_parameters:
        for name in ("parameters", "optimizers"):
            contents.pop(name, None)
        left_out.append(f"parameters, optimizers: the model has {count:,}, over {policy.max_parameters:,}")
    plain, tensors, odd = split(contents)
    for name in _GIVEN_UP:
        if _bytes(tensors) > policy.max_bytes and contents.pop(name, None) is not None:
            left_out.append(f"{name}: over the {policy.max_bytes:,} bytes of the policy")
            plain, tensors, odd = split(contents)
    held = {name: value for name, value in plain.items() if not (isinstance(value, dict) and "$left_out" in value)}
    return held, tensors, [*left_out, *unstored(odd)]


def unstored(odd: list[str]) -> list[str]:
    """A line for each of the first places that hold what is not stored, and one for all others."""
    lines = [f"{place.lstrip('/')}: of no kind that is stored" for place in odd[:_MOST_NAMED]]
    return [*lines, f"{len(odd) - _MOST_NAMED:,} more of no kind that is stored"] if len(odd) > _MOST_NAMED else lines


def states_of(
    optimizers: Mapping[str, Optimizer], schedulers: Mapping[str, Any], scalers: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """What has a state, by kind and by the name of its optimizer."""
    kinds = {"optimizers": optimizers, "schedulers": schedulers, "scalers": scalers}
    return {kind: {name: each for name, each in by.items() if each is not None} for kind, by in kinds.items()}


def _contents(model: torch.nn.Module, states: States, seen: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    left_out = [] if "batch" in seen else ["batch: the loop gave none to t.observe_batch()"]
    left_out += [f"{name}: could not be read before the forward" for name in ("buffers", "rng") if name not in seen]
    contents: dict[str, Any] = {
        "parameters": dict(model.named_parameters()),
        "layouts": _layouts(model, states["optimizers"]),
        "training": model.training,
        "modes": {name: module.training for name, module in model.named_modules()},
        **seen,
    }
    for kind, by_name in states.items():
        contents[kind] = {}
        for name, each in by_name.items():
            try:
                contents[kind][name] = each.state_dict()
            except Exception as error:  # noqa: BLE001  # the state of a class of the user's may raise anything
                left_out.append(f"{kind}/{name}: its state_dict() raised {describe_error(error)}")
    return contents, left_out


def _layouts(model: torch.nn.Module, optimizers: Mapping[str, Optimizer]) -> dict[str, Any]:
    """Of each optimizer its class, and the names of its groups' parameters: None for one that is not the model's."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {
        name: {
            "class": f"{type(optimizer).__module__}.{type(optimizer).__qualname__}",
            "groups": [[names.get(id(parameter)) for parameter in group["params"]] for group in optimizer.param_groups],
        }
        for name, optimizer in optimizers.items()
    }


def _bytes(tensors: Mapping[str, Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
