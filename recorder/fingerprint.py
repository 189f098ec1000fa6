"""The state of a loop in a few numbers, cheap enough for every checkpoint: what tells later whether it came back."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from math import isfinite
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from recorder.clocks import scheduler_position

# Of each tensor so many numbers are looked at: a step moves all of them.
_SAMPLE = 64

PARTS = ("model", "optimizer", "scheduler", "scaler", "rng", "sampler", "accumulation")

# By part of the state what it holds, as plain JSON.
Fingerprint = dict[str, dict[str, Any]]


def fingerprint(
    model: torch.nn.Module,
    optimizers: Mapping[str, Optimizer],
    schedulers: Mapping[str, Any],
    scalers: Mapping[str, Any],
    *,
    accumulating: bool = False,
) -> Fingerprint:
    """Of everything that a checkpoint has to bring back. Digests are over a sample of each tensor.

    The position in the data is the loop's to tell (`position_of`). `accumulating` says that the gradients are those of
    a step that is half done.
    """
    found: Fingerprint = {
        "model": {"parameters": _digest(model.parameters()), "buffers": _digest(_buffers(model))},
        "optimizer": _of_each(optimizers, _moments),
        "scheduler": _of_each(schedulers, _position),
        "scaler": _of_each(scalers, _scale),
        "rng": _generators(),
    }
    gradients = [p.grad for p in model.parameters() if p.grad is not None] if accumulating else []
    found["accumulation"] = {"gradients": _digest(gradients)} if gradients else {}
    return found


def differences(then: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """By part that both know of, in words, what is not as it was; empty where all is."""
    return {
        part: [_difference(what, value, now[part]) for what, value in values.items() if now[part].get(what) != value]
        for part, values in then.items()
        if part in now
    }


def position_of(sampler: Any) -> dict[str, Any]:
    """The position in the data: as it is where it is text or a number, else a digest.

    Raises TypeError where it holds what has no value of its own: nothing could be told by it in another process.
    """
    state = _plain(sampler.state_dict() if hasattr(sampler, "state_dict") else sampler)
    return {"position": state if isinstance(state, (int, float, str)) else _hash(json.dumps(state).encode())}


def _plain(state: Any) -> Any:
    """The same value for the same position, whichever types hold it: lists of numbers and text."""
    if isinstance(state, bytes):
        return _hash(state)
    if isinstance(state, (Tensor, np.ndarray, np.generic)):
        state = state.tolist()
    if state is None or isinstance(state, (bool, int, str)):
        return state
    if isinstance(state, float):
        return state if isfinite(state) else str(state)
    if isinstance(state, Mapping):
        return sorted(([str(key), _plain(value)] for key, value in state.items()), key=itemgetter(0))
    if isinstance(state, (list, tuple)):
        return [_plain(value) for value in state]
    if isinstance(state, (set, frozenset)):
        return sorted((_plain(value) for value in state), key=repr)
    raise TypeError(
        f"a position in the data is text, a number or a state_dict() of such, not {type(state).__name__}: "
        "it is left out of the fingerprint"
    )


def _difference(what: str, then: Any, now: Mapping[str, Any]) -> str:
    if what not in now:
        return f"no {what}"
    # A digest tells only that it is another one.
    return f"{what} differs" if isinstance(then, str) and what != "position" else f"{what} {now[what]}, was {then}"


def _of_each(named: Mapping[str, Any], look: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """What is seen of each that there is; under its optimizer's name where there are several."""
    return {
        what if len(named) == 1 else f"{name}.{what}": value
        for name, each in named.items()
        if each is not None
        for what, value in look(each).items()
    }


def _moments(optimizer: Optimizer) -> dict[str, Any]:
    by_kind: dict[str, list[Tensor]] = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            for kind, value in optimizer.state.get(parameter, {}).items():
                if isinstance(value, (Tensor, int, float)):
                    held = value if isinstance(value, Tensor) else torch.tensor(float(value), dtype=torch.float64)
                    by_kind.setdefault(str(kind), []).append(held)
    return {kind: _digest(tensors) for kind, tensors in sorted(by_kind.items())}


def _position(scheduler: Any) -> dict[str, Any]:
    position = scheduler_position(scheduler)
    return {} if position is None else {"step": position.epoch + position.within if position.within else position.epoch}


def _scale(scaler: Any) -> dict[str, Any]:
    if not scaler.is_enabled():
        return {}
    state = scaler.state_dict()
    return {"scale": float(state["scale"]), "healthy steps": int(state["_growth_tracker"])}


def _generators() -> dict[str, Any]:
    held = {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "numpy": repr(np.random.get_state()).encode(),  # noqa: NPY002  # the global one is what a loop uses
        "python": repr(random.getstate()).encode(),
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch's own
        held["cuda"] = torch.cuda.get_rng_state().numpy().tobytes()
    return {name: _hash(state) for name, state in held.items()}


def _buffers(model: torch.nn.Module) -> list[Tensor]:
    """Those that a state dict holds."""
    return [
        buffer
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
        if name not in getattr(module, "_non_persistent_buffers_set", ())
    ]


@torch.no_grad()
def _digest(tensors: Iterable[Tensor]) -> str:
    """[hexadecimal] of a strided sample of each tensor; of a sharded one's share at hand."""
    alike: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
    for tensor in tensors:
        local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
        if local.numel() and not local.is_meta and local.layout == torch.strided:
            flat = (torch.view_as_real(local) if local.is_complex() else local).reshape(-1)
            sample = flat[:: -(-flat.numel() // _SAMPLE)]
            alike.setdefault((sample.device, sample.dtype), []).append(sample)
    return _hash(b"".join(torch.cat(samples).double().cpu().numpy().tobytes() for samples in alike.values()))


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()
