"""A GradScaler as the recorder sees it: its scale, whose gradients are still scaled, the steps asked of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor
from torch.amp import GradScaler
from torch.optim import Optimizer


@dataclass
class _Watched:
    """What is known of one scaler: who follows it, and whether a loss was scaled since its last update."""

    followers: list[ScalerWatch] = field(default_factory=list)
    has_scaled: bool = False


_WATCHED: WeakKeyDictionary[GradScaler, _Watched] = WeakKeyDictionary()


class ScalerWatch:
    """Follows one optimizer under a scaler, or under none.

    `attempt(True)` is called before each `scaler.step(optimizer)`, `attempt(False)` after one that came to its end: no
    hook of the optimizer fires where the scaler declines. The scaler's methods are wrapped on its class, where they
    look up the scalers that are followed: a wrapper on the instance would be pickled and copied with it.
    """

    def __init__(self, scaler: GradScaler | None, optimizer: Optimizer, attempt: Callable[[bool], None]) -> None:
        self.is_within_step = False
        self.steps_directly = False
        self.optimizer = optimizer
        self._attempt = attempt
        self._scaler = scaler if scaler is not None and scaler.is_enabled() else None
        self._watched = _Watched()
        if self._scaler is not None:
            _wrap_class(type(self._scaler))
            self._watched = _WATCHED.setdefault(self._scaler, self._watched)
            self._watched.followers.append(self)

    @property
    def is_enabled(self) -> bool:
        return self._scaler is not None

    def detach(self) -> None:
        if self in self._watched.followers:
            self._watched.followers.remove(self)

    def scale(self) -> Tensor | float | None:
        """The scale now, a number or a tensor of its own on the scaler's device; None without scaling."""
        if self._scaler is None:
            return None
        scale = self._scaler._scale
        if scale is None:
            # get_scale() reads a device back; before the first scale() it only returns the initial setting.
            return float(self._scaler.get_scale())
        return float(scale.numpy()) if scale.device.type == "cpu" else scale.detach().clone()

    @property
    def holds_scaled(self) -> bool:
        """Whether the optimizer's gradients are still multiplied by the scale.

        They are where a loss was scaled since the last update and nothing was unscaled for the optimizer, which is
        taken to step through the scaler until it is seen to step by itself.
        """
        if self._scaler is None or not self._watched.has_scaled or self.steps_directly:
            return False
        state = self._scaler._per_optimizer_states.get(id(self.optimizer))
        return state is None or state["stage"].name == "READY"

    def unscale_(self) -> None:
        """`scaler.unscale_`, unless it was done already in this step."""
        if self._scaler is not None and self.holds_scaled:
            self._scaler.unscale_(self.optimizer)

    def enter(self) -> None:
        """A step of the scaler begins. A subclass that calls its base's step enters once."""
        if not self.is_within_step:
            self.is_within_step, self.steps_directly = True, False
            self._attempt(True)

    def leave(self, finished: bool) -> None:
        """It ended, by itself or by an exception."""
        if self.is_within_step:
            self.is_within_step = False
            if finished:
                self._attempt(False)


def _wrap_class(kind: type[GradScaler]) -> None:
    if getattr(kind.step, "_is_watched", False):
        return
    step, scale, update = kind.step, kind.scale, kind.update

    @wraps(step)
    def watched_step(self: GradScaler, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        watched = _WATCHED.get(self)
        followers = [] if watched is None else [f for f in watched.followers if f.optimizer is optimizer]
        finished = False
        for follower in followers:
            follower.enter()
        try:
            result = step(self, optimizer, *args, **kwargs)
            finished = True
        finally:
            for follower in followers:
                follower.leave(finished)
        return result

    @wraps(scale)
    def watched_scale(self: GradScaler, outputs: Any) -> Any:
        watched = _WATCHED.get(self)
        if watched is not None:
            watched.has_scaled = True
        return scale(self, outputs)

    @wraps(update)
    def watched_update(self: GradScaler, *args: Any, **kwargs: Any) -> None:
        update(self, *args, **kwargs)
        watched = _WATCHED.get(self)
        if watched is not None:
            watched.has_scaled = False

    watched_step._is_watched = True  # type: ignore[attr-defined]  # the mark that keeps it from being wrapped again
    for name, function in (("step", watched_step), ("scale", watched_scale), ("update", watched_update)):
        setattr(kind, name, function)
