"""The same batch in four precisions: a format that is too narrow, or no finite value in any."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from recorder.capture import Capture
from recorder.replay.comparison import DOES_NOT_TELL, NEAR, REFUTES, SUPPORTS, Comparison, short
from recorder.replay.inputs import widened
from recorder.replay.outcome import DTYPES, Outcome, as_far_as_they_go, evaluate
from recorder.replay.setting import Built, ReplayError, restore

# Formats with a wider range, or where none has, more digits. bf16 reaches as far as fp32.
_WIDER = {"fp64": (), "fp32": ("fp64",), "bf16": ("fp32", "fp64"), "fp16": ("fp32", "fp64")}


def in_each_precision(built: Built, capture: Capture) -> tuple[dict[str, Outcome], list[str]]:
    """The captured batch in fp64 and fp32 throughout, and under autocast to bf16 and fp16.

    A precision that the model cannot run in is not among them; the list says why.
    """
    refusals: list[str] = []
    runs = [partial(_in_precision, built, capture, precision) for precision in DTYPES]
    return {outcome.label: outcome for outcome in as_far_as_they_go(runs, refusals)}, refusals


def _in_precision(built: Built, capture: Capture, precision: str) -> Outcome:
    own = built.copy()
    restore(own, capture)
    own.model.to(torch.float64 if precision == "fp64" else torch.float32)
    scale = capture.facts.get("loss_scale") if precision == "fp16" else None
    batch, rng = widened(capture.contents["batch"]), capture.contents.get("rng", {})
    with _Narrowing() as narrowing:  # type: ignore[no-untyped-call]  # torch's own
        outcome = evaluate(own, batch, rng, label=precision, precision=precision, loss_scale=scale)
    if narrowing.seen and not outcome.finite:
        raise ReplayError(f"{precision}: not finite, but the loss function casts fp64 to {narrowing.seen} on the way")
    return outcome


class _Narrowing(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own
    """Notes where a double is cast to a narrower type: what overflows there says nothing of fp64."""

    seen = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten._to_copy.default and args[0].dtype is torch.float64 and _is_narrow(result):
            self.seen = str(result.dtype).removeprefix("torch.")
        return result


def _is_narrow(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.dtype is not torch.float64


def range_and_arithmetic(
    recorded: str, outcomes: dict[str, Outcome], refusals: list[str], poisoned: str | None
) -> list[Comparison]:
    """What the four say about the number format, and about the arithmetic, unless its input was not finite already."""
    told = "; ".join([*map(_one, outcomes.values()), *refusals])
    told = told if poisoned is None else f"{poisoned} holds numbers that are not finite already; {told}"
    return [
        Comparison(
            "numerical_range",
            f"the numbers leave the range of {recorded}",
            f"no wider format is finite either, or {recorded} gives the same loss and gradient as it does",
            told,
            DOES_NOT_TELL if poisoned else _range(recorded, outcomes),
        ),
        Comparison(
            "arithmetic",
            "an operation has no finite value or derivative at this batch, whatever the precision",
            "fp64 is finite",
            told,
            DOES_NOT_TELL if poisoned else _arithmetic(outcomes),
        ),
    ]


def _range(recorded: str, outcomes: dict[str, Outcome]) -> str:
    """A format with fewer digits also rounds to what has no value (1 - x to 0 under a logarithm): that is no range.

    So what is finite only in a wider format must also be finite in bf16, which has a range but fewer digits still, or
    hold a number that the recorded format cannot.
    """
    narrow, wider = outcomes.get(recorded), [outcomes[name] for name in _WIDER[recorded] if name in outcomes]
    if narrow is None:
        return DOES_NOT_TELL
    if narrow.finite:
        is_told = bool(wider) or not _WIDER[recorded]
        return REFUTES if is_told and all(_same(narrow, wide) for wide in wider) else DOES_NOT_TELL
    finite = [wide for wide in wider if wide.finite]
    if not finite:
        return REFUTES if wider else DOES_NOT_TELL
    bf16, limit = outcomes.get("bf16"), torch.finfo(DTYPES[recorded]).max
    keeps_range = recorded == "fp16" and bf16 is not None and bf16.finite and len(finite) == len(wider)
    return SUPPORTS if keeps_range or _reach(finite[-1]) > limit else DOES_NOT_TELL


def _arithmetic(outcomes: dict[str, Outcome]) -> str:
    widest = outcomes.get("fp64")
    if widest is None:
        return DOES_NOT_TELL
    if widest.finite:
        return REFUTES
    return DOES_NOT_TELL if any(o.finite for o in outcomes.values()) else SUPPORTS


def _reach(outcome: Outcome) -> float:
    """The largest number that is known of an evaluation."""
    return max(abs(outcome.loss), outcome.grad_norm, *(value for _, value, _ in outcome.largest))


def _one(outcome: Outcome) -> str:
    where = ""
    if outcome.first_module is not None:
        where = f", first in the output of {outcome.first_module}"
    elif outcome.first_parameter is not None:
        where = f", first in the gradient of {outcome.first_parameter}"
    return f"{outcome.label}: loss {short(outcome.loss)}, norm {short(outcome.grad_norm)}{where}"


def _same(narrow: Outcome, wide: Outcome) -> bool:
    pairs = [(narrow.loss, wide.loss), (narrow.grad_norm, wide.grad_norm)]
    return wide.finite and all(a == b or (b != 0 and 1 / NEAR <= a / b <= NEAR) for a, b in pairs)
