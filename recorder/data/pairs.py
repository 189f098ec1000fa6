"""Datasets whose samples come with their ids, for loops that make their own loader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import Dataset, IterableDataset

from recorder.data.fetching import IdOf, every, items


class PairedDataset(Dataset[tuple[Any, Any]]):
    """(id, sample) of a map-style dataset: the index, or what `id_of` makes of the sample."""

    def __init__(self, dataset: Any, id_of: IdOf | None) -> None:
        self.dataset, self.id_of = dataset, id_of

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        return self._pair(index, self.dataset[index])

    def __getitems__(self, indices: Any) -> list[tuple[Any, Any]]:
        indices = every(indices)
        return [self._pair(*each) for each in zip(indices, items(self.dataset, indices), strict=True)]

    def __len__(self) -> int:
        return len(self.dataset)

    def _pair(self, index: Any, sample: Any) -> tuple[Any, Any]:
        return (index if self.id_of is None else self.id_of(sample)), sample


class PairedStream(IterableDataset[tuple[Any, Any]]):
    """(id, sample) of a dataset that is iterated over."""

    def __init__(self, dataset: Any, id_of: IdOf | None) -> None:
        self.dataset, self.id_of = dataset, id_of

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        assert self.id_of is not None
        return ((self.id_of(sample), sample) for sample in self.dataset)
