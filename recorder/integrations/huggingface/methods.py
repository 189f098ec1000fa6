"""What takes the place of the Trainer's own methods while a training is recorded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from recorder.integrations.clipping import clip_by_norm
from recorder.integrations.following import Following

_NO_LOSS = "this Trainer's training_step does not call compute_loss: the loss of its rows is not recorded"


class TrainerMethods:
    """Each method named as one of the Trainer's, or of its accelerator's, gives what replaces it.

    `begin` opens a row with the inputs of a step.
    """

    def __init__(self, following: Following, begin: Callable[[Any], None]) -> None:
        self._following = following
        self._begin = begin
        self._in_step = False
        self._depth = 0
        self._has_loss = False

    def training_step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def training_step(model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            self._begin(inputs)
            self._in_step, self._depth, self._has_loss = True, 0, False
            try:
                result = original(model, inputs, *args, **kwargs)
            finally:
                self._in_step = False
            if not self._has_loss and self._following.recorder is not None:
                self._following.recorder.note_once(_NO_LOSS)
            return result

        return training_step

    def compute_loss(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Of the calls within one step the loss is what the outermost that can be differentiated gives.

        An evaluation in the middle of a step calls it too, for batches of its own.
        """

        @wraps(original)
        def compute_loss(*args: Any, **kwargs: Any) -> Any:
            self._depth += 1
            try:
                result = original(*args, **kwargs)
            finally:
                self._depth -= 1
            t = self._following.transition
            loss = result[0] if isinstance(result, tuple) else result
            is_own = self._in_step and self._depth == 0 and getattr(loss, "requires_grad", False)
            if t is not None and is_own and not self._has_loss:
                self._has_loss = True
                t.observe_loss(loss)
            return result

        return compute_loss

    def clip_grad_norm_(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def clip_grad_norm_(parameters: Any, max_norm: Any, *args: Any, **kwargs: Any) -> Any:
            t = self._following.transition
            clip = original if t is None else partial(clip_by_norm, t, original)
            return clip(parameters, max_norm, *args, **kwargs)

        return clip_grad_norm_
