"""Whichever of Lightning's two packages the script uses."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def callback_class() -> Any:
    """Its class of callbacks. Raises ImportError where there is none."""
    names = sorted(("lightning.pytorch", "pytorch_lightning"), key=lambda name: name not in sys.modules)
    for name in names:
        try:
            return import_module(name).Callback
        except ImportError:
            continue
    raise ImportError("recorder.integrations.lightning needs Lightning: pip install 'spikeview[lightning]'")
