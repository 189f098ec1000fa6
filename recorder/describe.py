"""What ran, for the manifest: model, optimizers, scheduler, scaler, versions. Host and user stay out."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import torch
from torch.optim import Optimizer

from recorder.clocks import scheduler_position, scheduler_stride
from recorder.probes import Parameter
from recorder.shards import LOCAL, scope


def describe(
    model: torch.nn.Module,
    optimizers: Mapping[str, Optimizer],
    schedulers: Mapping[str, Any],
    scalers: Mapping[str, Any],
    max_norms: Mapping[str, float | None],
    config: Any,
) -> dict[str, Any]:
    """The manifest of a run as plain JSON values."""
    parameters = list(model.parameters())
    if any(isinstance(p, torch.nn.UninitializedParameter) for p in parameters):
        raise ValueError("the model has lazy parameters without a shape: run one forward before making the recorder")
    return {
        "recorder": {
            "version": _version("spikeview"),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": _version("numpy"),
            "pyarrow": _version("pyarrow"),
        },
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": {
            "class": type(model).__name__,
            "parameters": sum(p.numel() for p in parameters),
            "trainable": sum(p.numel() for p in parameters if p.requires_grad),
            "dtypes": _dtypes(parameters),
            "sharded": scope(parameters) == LOCAL,
        },
        "device": str(next((p.device for p in parameters), torch.device("cpu"))),
        "world_size": _world_size(),
        "seed": torch.initial_seed(),
        "optimizers": {
            name: {
                "class": type(optimizer).__name__,
                "max_norm": max_norms.get(name),
                "groups": [_group(group) for group in optimizer.param_groups],
                "scheduler": _scheduler(schedulers.get(name)),
                "scaler": _scaler(scalers.get(name)),
            }
            for name, optimizer in optimizers.items()
        },
        "scaler": _scaler(next(iter(scalers.values()), None)),
        "config": plain(_mapping(config)),
    }


def gradient_dtypes(parameters: Iterable[Parameter]) -> dict[str, int]:
    """How many gradients there are of each type."""
    return _dtypes(p.tensor.grad for p in parameters if p.tensor.grad is not None)


def plain(value: Any, depth: int = 8) -> Any:
    """A value as JSON can hold it; what has no such form, or lies too deep, is given by its repr."""
    if depth == 0:
        return f"{repr(value)[:200]}"
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.Tensor):
        return plain(value.tolist(), depth - 1) if value.numel() <= 16 else f"tensor of shape {tuple(value.shape)}"
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(item, depth - 1) for item in value]
    return repr(value)


def _dtypes(tensors: Iterable[torch.Tensor]) -> dict[str, int]:
    return dict(Counter(str(tensor.dtype).removeprefix("torch.") for tensor in tensors))


def _mapping(config: Any) -> dict[str, Any]:
    """A mapping, or the attributes of an object such as argparse's Namespace."""
    if config is None:
        return {}
    return dict(config) if isinstance(config, Mapping) else dict(getattr(config, "__dict__", {"value": config}))


def _group(group: Mapping[str, Any]) -> dict[str, Any]:
    settings = {key: plain(value) for key, value in group.items() if key != "params"}
    return {**settings, "parameters": sum(p.numel() for p in group["params"])}


def _scheduler(scheduler: Any) -> dict[str, Any] | None:
    if scheduler is None:
        return None
    position, stride = scheduler_position(scheduler), scheduler_stride(scheduler)
    told = {
        "class": type(getattr(scheduler, "scheduler", scheduler)).__name__,
        "position": None if position is None else position.epoch,
    }
    return told if stride == 1 else {**told, "stride": stride}


def _scaler(scaler: Any) -> dict[str, Any] | None:
    if scaler is None:
        return None
    if not scaler.is_enabled():
        return {"enabled": False}
    return {
        "enabled": True,
        "scale": scaler.get_scale(),
        "growth_factor": scaler.get_growth_factor(),
        "backoff_factor": scaler.get_backoff_factor(),
        "growth_interval": scaler.get_growth_interval(),
    }


def _world_size() -> int:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_world_size()
    return 1


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "unknown"
