"""What a loader tells of itself."""

from __future__ import annotations

from typing import Any


def length_of(loader: Any) -> int | None:
    """How many batches it has; None where it does not know, as one over an IterableDataset."""
    try:
        return len(loader)
    except TypeError:
        return None
