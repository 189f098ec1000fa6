"""What takes the place of Lightning's own methods while a training is recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from recorder.integrations.following import Following
from recorder.integrations.lightning.optimizers import Optimizers
from recorder.transition import Transition


class TrainerMethods:
    """Each method named as one of Lightning's gives what replaces it. `is_manual` is how the module optimizes."""

    def __init__(self, following: Following, optimizers: Optimizers, is_manual: bool) -> None:
        self.is_manual = is_manual
        self._following = following
        self._optimizers = optimizers

    def of(self, optimizer: Any) -> Transition | None:
        """The open row of an optimizer."""
        t, name = self._following.transition, self._optimizers.name_of(optimizer)
        return None if t is None or name is None else t.of(name)

    def training_step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def training_step(*args: Any, **kwargs: Any) -> Any:
            output = original(*args, **kwargs)
            if not self.is_manual:
                self._see_loss(output.get("loss") if isinstance(output, Mapping) else output)
            return output

        return training_step

    def backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def backward(loss: Any, *args: Any, **kwargs: Any) -> Any:
            if self.is_manual:
                self._see_loss(loss)
            return original(loss, *args, **kwargs)

        return backward

    def clip_gradients(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def clip_gradients(optimizer: Any, clip_val: Any = 0.0, gradient_clip_algorithm: Any = "norm") -> Any:
            t = self.of(optimizer)
            if t is not None and clip_val and clip_val > 0:
                if self.is_manual:
                    t.measure_grad_norm()
                if gradient_clip_algorithm is not None and clips_by_norm(gradient_clip_algorithm):
                    t.observe_clipping(clip_val)
            return original(optimizer, clip_val, gradient_clip_algorithm)

        return clip_gradients

    def _see_loss(self, loss: Any) -> None:
        t = self._following.transition
        if t is not None and loss is not None:
            t.observe_loss(loss)


def clips_by_norm(algorithm: Any) -> bool:
    """Whether this algorithm of Lightning's, an enumerator, its name, or None, is that of the norm."""
    return str(getattr(algorithm, "value", algorithm) or "norm") == "norm"
