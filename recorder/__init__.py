"""The flight recorder: writes every transition of a PyTorch training loop to a run directory.

Importing the package costs neither torch nor Qt: the public names are loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = [
    "CapturePolicy",
    "FlightRecorder",
    "NonFiniteError",
    "SkipRateExceeded",
    "Transition",
    "Trigger",
    "above",
    "below",
    "departs",
]

_HOME = {
    "CapturePolicy": "recorder.capture",
    "FlightRecorder": "recorder.flight",
    "NonFiniteError": "recorder.limits",
    "SkipRateExceeded": "recorder.limits",
    "Transition": "recorder.transition",
    "Trigger": "recorder.trigger",
    "above": "recorder.trigger",
    "below": "recorder.trigger",
    "departs": "recorder.trigger",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'recorder' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
