"""One evaluation of a batch: its loss, its gradient, and where they stop being finite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import torch
from torch import Tensor

from recorder.capture import Capture
from recorder.probes import Parameter, absmax, gradient_norms, total_norm
from recorder.readings import fetch, number
from recorder.replay.inputs import as_input
from recorder.replay.setting import Built, ReplayError, in_one_line, restore_random

DTYPES = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_LARGEST = 8


@dataclass(frozen=True)
class Outcome:
    """What came out under one label.

    `first_module` is the first whose output is not finite, `first_parameter` the first whose gradient is not. `largest`
    are the modules with the largest outputs: name, largest magnitude, and its share of the format's largest number.
    """

    label: str
    loss: float
    grad_norm: float
    finite: bool
    first_module: str | None
    first_parameter: str | None
    largest: tuple[tuple[str, float, float], ...]

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)


def evaluate(
    built: Built, batch: Any, rng: Mapping[str, Any], *, label: str, precision: str, loss_scale: float | None = None
) -> Outcome:
    """Forward and backward of one batch in a precision: autocast where the parameters have another type.

    The gradient is left in the model, in true units: `loss_scale` multiplies the loss and is taken out again. Raises
    ReplayError, with the label, where the loss function fails or gives no scalar that depends on its model.
    """
    model, seen = built.model, list[tuple[str, Tensor]]()
    scale = loss_scale if loss_scale and isfinite(loss_scale) else 1.0
    model.zero_grad(set_to_none=True)
    restore_random(rng)
    try:
        with _outputs_of(model, seen), torch.enable_grad(), autocast(built, precision):
            loss = built.loss(model, as_input(batch, built.device, built.dtype))
        _refuse_unless_loss(loss)
        (loss * scale).backward()  # type: ignore[no-untyped-call]  # torch's own
    except ReplayError as error:
        raise ReplayError(f"{label}: {error}") from None
    except Exception as error:  # the user's functions may raise anything
        raise ReplayError(f"{label}: the loss function fails on this batch ({in_one_line(error)})") from error
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    if not gradients:
        raise ReplayError(f"{label}: the loss does not depend on the model that it is given as its first argument")
    named = [(name, p) for name, p in model.named_parameters() if built.owned is None or name in built.owned]
    gradient = gradient_norms([Parameter(name, name, p) for name, p in named])
    if scale != 1.0:
        torch._foreach_div_(list(gradients.values()), scale)
    outputs = [(name, float(value)) for (name, _), value in zip(seen, fetch([v for _, v in seen]), strict=True)]  # type: ignore[arg-type]  # they are 0-d
    flags = gradient.nonfinite.tolist() if isinstance(gradient.nonfinite, Tensor) else gradient.nonfinite
    norm = number(total_norm(gradient)) / scale
    value = number(loss)
    return Outcome(
        label,
        value,
        norm,
        isfinite(value) and not any(flags),
        next((name for name, largest in outputs if not isfinite(largest)), None),
        next((p.name for p, flag in zip(gradient.parameters, flags, strict=True) if flag), None),
        _largest(outputs, torch.finfo(DTYPES[precision]).max),
    )


def as_far_as_they_go(evaluations: Iterable[Callable[[], Outcome]], refusals: list[str]) -> list[Outcome]:
    """The outcomes of those evaluations that can be made; why the others cannot is added to `refusals`."""
    outcomes = []
    for run in evaluations:
        try:
            outcomes.append(run())
        except ReplayError as error:
            refusals.append(str(error))
    return outcomes


def recorded_precision(capture: Capture) -> str:
    """The precision of the captured forward; fp32 where none was seen."""
    return str(capture.facts.get("precision") or "fp32")


def autocast(built: Built, precision: str) -> AbstractContextManager[Any]:
    """The context that a forward of this precision runs in."""
    dtype = DTYPES[precision]
    if dtype is built.dtype or dtype in (torch.float32, torch.float64):
        return nullcontext()
    return torch.autocast(built.device.type, dtype=dtype)


@contextmanager
def _outputs_of(model: torch.nn.Module, seen: list[tuple[str, Tensor]]) -> Iterator[None]:
    """Note the largest magnitude of each module's output, in the order of the forward."""
    names = {module: name or type(model).__name__ for name, module in model.named_modules()}

    def see(module: torch.nn.Module, _inputs: Any, output: Any) -> None:
        found = absmax(_tensors(output))
        if found is not None:
            seen.append((names[module], found))

    handles = [module.register_forward_hook(see) for module in names]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _tensors(output: Any) -> list[Tensor]:
    if isinstance(output, Mapping):
        output = list(output.values())
    return [o for o in (output if isinstance(output, (tuple, list)) else (output,)) if isinstance(o, Tensor)]


def _refuse_unless_loss(loss: Any) -> None:
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        given = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else f"a {type(loss).__name__}"
        raise ReplayError(f"the loss function must return a scalar tensor, not {given}")
    if not loss.requires_grad:
        raise ReplayError("the loss has no gradient: it must be computed from the model, without no_grad() or detach()")


def _largest(outputs: list[tuple[str, float]], limit: float) -> tuple[tuple[str, float, float], ...]:
    ordered = sorted(outputs, key=lambda pair: pair[1] if pair[1] == pair[1] else float("inf"), reverse=True)
    return tuple((name, value, value / limit) for name, value in ordered[:_LARGEST])
