"""The steps that the optimizer would take with and without its history, with and without clipping."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite, sqrt
from typing import Any

import torch

from recorder.capture import Capture
from recorder.probes import values_of
from recorder.replay.outcome import evaluate, recorded_precision
from recorder.replay.setting import Built, ReplayError, restore

# The share that two losses may be apart to count as the same.
SAME = 0.02
# How much of the step is tried as a shorter one.
TENTH = 0.1


@dataclass(frozen=True)
class Update:
    """One step from the captured parameters: how far it went, and the loss of the same batch after it."""

    label: str
    update_norm: float
    update_ratio: float
    loss_before: float
    loss_after: float

    @property
    def raises_loss(self) -> bool:
        """Whether the loss of the batch is higher after it, or no number any more."""
        return not self.loss_after <= self.loss_before + SAME * max(abs(self.loss_before), 1e-12)

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)


def updates(built: Built, capture: Capture, earlier: Capture | None) -> dict[str, Update]:
    """By the optimizer's history ("own", "no", and that of an earlier capture: "earlier") and by clipping.

    The keys are "own clipped", "no unclipped" and so on, and "tenth" for a tenth of the step that was taken. Raises
    ReplayError where the optimizer cannot be made again, and whatever torch raises where its state does not fit.
    """
    name, limit = optimizer_name(capture), capture.facts.get("max_norm")
    states: dict[str, Mapping[str, Any] | None] = {"own": state_of(capture, name), "no": {"state": {}}}
    states["earlier"] = None if earlier is None else state_of(earlier, name)
    if states["own"] is None:
        raise ReplayError("the capture holds no state of the optimizer")
    clips = {"clipped": limit, "unclipped": None} if limit else {"unclipped": None}
    found = {}
    for history, state in ((history, state) for history, state in states.items() if state is not None):
        for clip, most in clips.items():
            own = built.copy()
            restore(own, capture)
            try:
                optimizer = _optimizer(own, name, capture, state)
            except (KeyError, RuntimeError, TypeError, ValueError):
                if history == "earlier":  # of a smaller model, say
                    continue
                raise
            found[f"{history} {clip}"] = _step(own, capture, optimizer, f"{history} history, {clip}", most)
    shorter = built.copy()
    restore(shorter, capture)
    optimizer = _optimizer(shorter, name, capture, states["own"])
    found["tenth"] = _step(shorter, capture, optimizer, "a tenth of the step", limit, TENTH)
    return found


def owned_by(capture: Capture) -> frozenset[str] | None:
    """The names of the parameters that the row's optimizer steps; None where they are not known, or not all."""
    names = [name for group in _groups(capture) for name in group]
    known = frozenset(name for name in names if name is not None)
    return known if known and None not in names else None


def _step(
    built: Built,
    capture: Capture,
    optimizer: torch.optim.Optimizer,
    label: str,
    max_norm: float | None,
    share: float = 1.0,
) -> Update:
    precision, scale = recorded_precision(capture), capture.facts.get("loss_scale")
    batch, rng = capture.contents["batch"], capture.contents.get("rng", {})
    before = evaluate(built, batch, rng, label=label, precision=precision, loss_scale=scale)
    stepping = [p for group in optimizer.param_groups for p in group["params"]]
    gradients = [p.grad for p in stepping if p.grad is not None]
    if max_norm is not None and isfinite(before.grad_norm):
        torch._foreach_mul_(gradients, min(1.0, max_norm / (before.grad_norm + 1e-6)))
    theta = [p.detach().clone() for p in built.model.parameters()]
    optimizer.step()
    stepped = [p.detach().clone() for p in built.model.parameters()]
    if share != 1.0:
        stepped = [torch.lerp(before, after, share) for before, after in zip(theta, stepped, strict=True)]
    moved = _norm([after - before for after, before in zip(stepped, theta, strict=True)])
    restore(built, capture)  # the buffers, which the forward changed
    with torch.no_grad():
        torch._foreach_copy_(list(built.model.parameters()), stepped)
    after = evaluate(built, batch, rng, label=label, precision=precision, loss_scale=scale)
    return Update(label, moved, moved / (_norm(theta) or 1.0), before.loss, after.loss)


def optimizer_name(capture: Capture) -> str:
    """Of the optimizer whose row was captured."""
    return str(capture.facts.get("optimizer", "optimizer"))


def state_of(capture: Capture, name: str) -> Mapping[str, Any] | None:
    """What an optimizer's `state_dict()` gave; None where it was not captured."""
    state: Mapping[str, Any] | None = capture.contents.get("optimizers", {}).get(name)
    return state


def _groups(capture: Capture) -> list[list[str | None]]:
    """Names of the parameters in each group of the row's optimizer."""
    groups: list[list[str | None]] = (
        capture.contents.get("layouts", {}).get(optimizer_name(capture), {}).get("groups", [])
    )
    return groups


def _optimizer(built: Built, name: str, capture: Capture, history: Mapping[str, Any]) -> torch.optim.Optimizer:
    """The optimizer anew, with the groups that were captured and the history of this or another state."""
    where, _, kind = str(capture.contents.get("layouts", {}).get(name, {}).get("class")).rpartition(".")
    made: Any = getattr(torch.optim, kind, None)
    if not where.startswith("torch.optim.") or not isinstance(made, type):
        raise ReplayError(f"the optimizer {name!r} is a {where}.{kind}, which is none of torch.optim")
    if built.owned is None:
        raise ReplayError(f"the optimizer {name!r} steps parameters that are not the model's")
    groups, parameters = (state_of(capture, name) or {})["param_groups"], dict(built.model.named_parameters())
    own = [{"params": [parameters[str(each)] for each in names]} for names in _groups(capture)]
    optimizer: torch.optim.Optimizer = made(own, lr=float(groups[0]["lr"]))
    optimizer.load_state_dict(copy.deepcopy({"state": history["state"], "param_groups": groups}))
    return optimizer


def _norm(tensors: list[torch.Tensor]) -> float:
    return sqrt(sum(float(values_of(t).double().square().sum()) for t in tensors))
