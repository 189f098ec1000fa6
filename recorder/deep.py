"""When a row is deep, and what only a deep row watches in the forward pass."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isfinite, isnan, nan
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules.module import register_module_forward_hook

from recorder.guard import Guard
from recorder.probes import absmax

_PRECISION = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32", torch.float64: "fp64"}


class Cadence:
    """Every n-th row, or, with "auto", as often as keeps the measured cost of deep rows within `budget`.

    `budget` is the share of the loop's time that deep rows may take. 0 means never.
    """

    def __init__(self, every: int | str, budget: float) -> None:
        if every != "auto" and not (isinstance(every, int) and every >= 0):
            raise ValueError(f'deep_every must be "auto" or an integer of at least 0, not {every!r}')
        if not 0 < budget <= 1:
            raise ValueError(f"overhead_budget must be a share over 0 and up to 1, not {budget!r}")
        self.every = 1 if every == "auto" else int(every)
        self.is_auto = every == "auto"
        self.cost: float | None = None
        self._budget = budget
        self._typical: float | None = None
        self._next = 0

    def due(self, row: int) -> bool:
        return self.every > 0 and row >= self._next

    def ran(self, row: int, seconds: float, deep_seconds: float | None) -> None:
        """Tell how long a transition took, and how much of that was deep work (None on an ordinary row)."""
        ordinary = seconds - (deep_seconds or 0.0)
        self._typical = ordinary if self._typical is None else 0.9 * self._typical + 0.1 * ordinary
        if deep_seconds is None:
            return
        if self.is_auto:
            # The first deep row allocates its buffers, so a later, cheaper one may lower the estimate.
            self.cost = deep_seconds if self.cost is None else min(self.cost * 1.5, deep_seconds)
            self.every = max(1, ceil(self.cost / (self._budget * max(self._typical, 1e-9))))
        self._next = row + self.every

    def describe(self) -> dict[str, Any]:
        chosen = {"mode": "auto" if self.is_auto else "fixed", "every": self.every}
        return chosen if self.cost is None else {**chosen, "cost_seconds": self.cost, "budget": self._budget}


@dataclass(frozen=True, slots=True)
class ForwardReadings:
    """What one deep row's forward showed: largest magnitude of each output [M], in the order they came, and buffers.

    `buffers` is [B]: 1 where a buffer of the model holds a non-finite number after the forward.
    """

    names: Sequence[str]
    absmax: Tensor | None
    buffers: Tensor | None

    def readings(self) -> dict[str, Tensor | None]:
        return {"forward_absmax": self.absmax, "forward_buffers": self.buffers}

    def columns(self, numbers: Mapping[str, Any]) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        if self.absmax is not None:
            largest = numbers["forward_absmax"]
            columns["activation_absmax"] = nan if any(map(isnan, largest)) else max(largest)
            bad = (name for name, value in zip(self.names, largest, strict=True) if not isfinite(value))
            columns["first_nonfinite_module"] = next(bad, None)
        columns["nonfinite_buffers"] = 0 if self.buffers is None else int(sum(numbers["forward_buffers"]))
        return columns


class ForwardWatch:
    """Largest activations and the precision of the forward, seen by a hook that lives on no module.

    A hook on the model would be copied with it (EMA) and pickled with it; this one is global while a watched row is
    open, and ignores modules of other models. Where code is compiled no hook is set: each change of the global hooks
    would compile it again.
    """

    def __init__(self, model: torch.nn.Module, guard: Guard) -> None:
        self._model = model
        self._guard = guard
        self._modules = {id(module): name for name, module in model.named_modules()}
        self._device = next((p.device.type for p in model.parameters()), "cpu")
        self._seen: list[tuple[str, Tensor]] = []
        self._wants_activations = False
        self._was_cast = False
        self._handle: Any = None
        self.seconds = 0.0
        self.precision: str | None = None
        self._plain = _parameter_precision(model)

    def open(self, deep: bool, too_late: bool = False) -> None:
        """Watch the forward of the row that begins, if it is deep or the first one and not `too_late` for that."""
        self.seconds = 0.0
        self._wants_activations = deep and not too_late
        self._was_cast = False
        if (deep or self.precision is None) and not too_late and not _code_is_compiled():
            self._handle = register_module_forward_hook(self._see)

    def close(self) -> ForwardReadings | None:
        """What was seen since `open`, None unless the row was deep."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        seen, self._seen = self._seen, []
        if not self._wants_activations:
            return None
        started = perf_counter()
        buffers = [~torch.isfinite(b).all() for b in self._model.buffers() if b.is_floating_point() and b.numel()]
        readings = ForwardReadings(
            [name for name, _ in seen],
            _on_one_device([value for _, value in seen]),
            _on_one_device(buffers),
        )
        self.seconds += perf_counter() - started
        return readings

    def _see(self, module: torch.nn.Module, _inputs: Any, output: Any) -> None:
        name = self._modules.get(id(module))
        if name is None or torch.compiler.is_compiling():
            return
        with self._guard:
            self._read(name, output)

    def _read(self, name: str, output: Any) -> None:
        started = perf_counter()
        # A framework may cast within the model's forward, whose own hook then runs outside of it.
        if not self.see_autocast() and not self._was_cast:
            self.precision = self._plain
        if self._wants_activations:
            outputs = output if isinstance(output, (tuple, list)) else (output,)
            largest = absmax(o for o in outputs if isinstance(o, Tensor))
            if largest is not None:
                self._seen.append((name, largest))
        self.seconds += perf_counter() - started

    def see_autocast(self) -> bool:
        """Take autocast's type where it is on now, and say whether it is."""
        if torch.is_autocast_enabled(self._device):
            self.precision = _name(torch.get_autocast_dtype(self._device))
            self._was_cast = True
            return True
        return False


def _on_one_device(values: list[Tensor]) -> Tensor | None:
    return torch.stack([value.to(values[0].device) for value in values]) if values else None


def _code_is_compiled() -> bool:
    """Whether torch.compile was called in this process."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    return any(backend is not None for backend in getattr(dynamo, "cached_backends", {}).values())


def _name(dtype: torch.dtype) -> str:
    return _PRECISION.get(dtype, str(dtype).removeprefix("torch."))


def _parameter_precision(model: torch.nn.Module) -> str | None:
    """The type of the parameters: what a forward without autocast runs in."""
    dtypes = [p.dtype for p in model.parameters() if p.is_floating_point()]
    return _name(dtypes[0]) if dtypes else None
