"""A callback that comes to a training which has begun."""

from __future__ import annotations

import warnings


def warn_late(begun: str) -> None:
    """Say that nothing is recorded of what `begun` has started already."""
    warnings.warn(
        f"SpikeviewCallback was added when {begun} had begun, and records nothing of it: give it to the Trainer "
        "before, in callbacks=[...]",
        RuntimeWarning,
        stacklevel=3,
    )
