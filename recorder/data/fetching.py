"""How a loader asks a dataset for the samples of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

# From a sample to its id: a number, a name, or a tuple of them.
IdOf: TypeAlias = Callable[[Any], Any]


def items(dataset: Any, indices: Any) -> Any:
    """The samples of a map-style dataset at these indices."""
    many = getattr(dataset, "__getitems__", None)
    return many(indices) if many else [dataset[index] for index in indices]


def listed(ids: Any) -> list[Any]:
    """The ids of what was fetched at once: those in a list, a range, an array or a tensor; else the one that it is."""
    plain = ids.tolist() if hasattr(ids, "tolist") else ids
    return list(plain) if isinstance(plain, list | range | set | frozenset) else [plain]


def every(indices: Any) -> Any:
    """The indices of a batch so that they can be read twice: a sampler may give them as an iterator."""
    return list(indices) if isinstance(indices, Iterator) else indices
