"""The recorder of a loop that goes through an Accelerator, from the line that follows it until it is closed."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from contextlib import ExitStack
from os import PathLike
from typing import Any
from weakref import WeakSet

from accelerate import Accelerator
from torch.nn import Module
from torch.optim import Optimizer

from recorder.flight import FlightRecorder
from recorder.integrations.accelerate.loop import Loop
from recorder.integrations.replacing import replaced

_FOLLOWED: WeakSet[Accelerator] = WeakSet()


def follow(
    accelerator: Accelerator,
    directory: str | PathLike[str],
    model: Module,
    optimizer: Optimizer | Mapping[str, Optimizer],
    scheduler: Any = None,
    **settings: Any,
) -> FlightRecorder:
    """Record what `accelerator` does from here on; `settings` are those of `FlightRecorder`, which is returned.

    Model, optimizer and scheduler are those that `accelerator.prepare` returned, before `load_state`. The run is
    closed by `accelerator.end_training()`, by `recorder.close()`, or with the process.

    Raises ValueError where the accelerator is followed already: its rows would be those of both.
    """
    if accelerator in _FOLLOWED:
        raise ValueError(
            "this accelerator is followed already: close() that recorder first, or follow several models as one "
            "torch.nn.ModuleDict with a dict of optimizers"
        )
    recorder = FlightRecorder(
        directory,
        accelerator.unwrap_model(model),
        optimizer,
        scaler=accelerator.scaler,
        scheduler=scheduler,
        **settings,
    )
    _FOLLOWED.add(accelerator)
    recorder.when_closed(lambda: _FOLLOWED.discard(accelerator))
    loop = Loop(accelerator, recorder)
    within = ExitStack()
    for name in ("accumulate", "backward", "clip_grad_norm_", "clip_grad_value_", "load_state", "end_training"):
        within.enter_context(replaced(accelerator, name, getattr(loop, name)))
    within.callback(accelerator.register_save_state_pre_hook(loop.saving).remove)
    within.callback(accelerator.register_load_state_pre_hook(loop.loading).remove)
    recorder.when_closed(within.close)
    atexit.register(recorder.close)
    recorder.when_closed(lambda: atexit.unregister(recorder.close))
    return recorder
