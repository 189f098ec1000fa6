"""Accelerate: records a loop that goes through an `Accelerator`, by one line after `prepare`.

    recorder = follow(accelerator, "runs/mlp", model, optimizer, scheduler)

A row opens where `accelerator.accumulate(model)` is entered. In a loop without it a row opens where
`accelerator.backward` is called: too late to see the forward, so its columns are not recorded. A transition that the
loop opens by itself, with `recorder.transition(...)`, is the row.
"""

from __future__ import annotations

try:
    from accelerate import Accelerator  # noqa: F401  # only to say what is missing
except ImportError as error:
    raise ImportError(
        "recorder.integrations.accelerate needs Accelerate: pip install 'spikeview[accelerate]'"
    ) from error

from recorder.integrations.accelerate.recording import follow

__all__ = ["follow"]
