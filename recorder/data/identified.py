"""Batches together with the ids of the samples that they were made of."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

from torch.utils.data import DataLoader, IterableDataset, IterDataPipe, MapDataPipe

from recorder.data.fetching import IdOf, every, items, listed
from recorder.data.pairs import PairedDataset, PairedStream
from recorder.sample_ids import SampleIds, as_text


class Identified(NamedTuple):
    """What an identified loader yields. `ids` is given to `recorder.transition(batch_id=ids)`."""

    ids: SampleIds
    batch: Any


def identified(source: Any, id_of: IdOf | None = None) -> Any:
    """A loader that yields `(ids, batch)` where the given one yields `batch`; of a dataset, one of `(id, sample)`.

    The batches are those of the given loader, bit for bit: same sampler, workers, collation and draws from generators.
    The ids are the indices that the sampler gave, in the order of the batch. `id_of` takes a sample and gives its id
    instead, a number or a name; a dataset that is iterated over has no indices and needs it. Without automatic batching
    (`batch_size=None`) it is given what the dataset yields, and may give a list of ids.

    The given loader is left as it is and shares its sampler with the one returned, so `loader.sampler.set_epoch(e)`
    still reaches both. Raises TypeError where there is nothing that an id could come from.
    """
    if not isinstance(source, DataLoader):
        _check_has_ids(source, id_of)
        return PairedStream(source, id_of) if _is_stream(source) else PairedDataset(source, id_of)
    if isinstance(source.dataset, IterDataPipe | MapDataPipe):
        raise TypeError("identified takes no data pipes: wrap what comes before them, or pass batch_id= by hand")
    if isinstance(source.collate_fn, IndexedCollate | NamedCollate):
        if id_of is not None:
            raise TypeError("the loader is identified already: give id_of= where that is done, or the loader as it was")
        return source
    _check_has_ids(source.dataset, id_of)
    loader, batched = copy(source), source.batch_sampler is not None
    state = vars(loader)  # a loader refuses another dataset once it is made
    state["_iterator"] = None
    collate = source.collate_fn
    if id_of is None:
        state["dataset"], loader.collate_fn = IndexedDataset(source.dataset), IndexedCollate(collate, batched)
    else:
        loader.collate_fn = NamedCollate(collate, id_of, batched)
    return loader


class Fetched(NamedTuple):
    """What a map-style dataset gave for an index, or for the indices of a batch."""

    indices: Any
    data: Any


class IndexedDataset:
    """A map-style dataset whose items come with their indices; everything else is the dataset's own.

    `worker_init_fn` sees it as `get_worker_info().dataset`, so attributes are read from and set on the dataset.
    """

    def __init__(self, dataset: Any) -> None:
        object.__setattr__(self, "_dataset", dataset)

    def __getitem__(self, index: Any) -> Fetched:
        return Fetched(index, self._dataset[index])

    def __getitems__(self, indices: Any) -> Fetched:
        indices = every(indices)
        return Fetched(indices, items(self._dataset, indices))

    def __len__(self) -> int:
        return len(self._dataset)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copy and pickle ask for
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._dataset, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return IndexedDataset, (self._dataset,)


class IndexedCollate:
    """Collates what an `IndexedDataset` gives."""

    def __init__(self, collate: Callable[[Any], Any], batched: bool) -> None:
        self.collate, self.batched = collate, batched

    def __call__(self, fetched: Fetched) -> Identified:
        indices = fetched.indices
        # Of a batch a tuple holds the indices; by itself it is one.
        ids = list(indices) if self.batched and isinstance(indices, tuple) else listed(indices)
        return Identified(SampleIds(as_text(ids)), self.collate(fetched.data))


class NamedCollate:
    """Collates samples whose ids are to be found in them."""

    def __init__(self, collate: Callable[[Any], Any], id_of: IdOf, batched: bool) -> None:
        self.collate, self.id_of, self.batched = collate, id_of, batched

    def __call__(self, data: Any) -> Identified:
        found = [self.id_of(sample) for sample in data] if self.batched else listed(self.id_of(data))
        return Identified(SampleIds(as_text(found)), self.collate(data))


def _is_stream(dataset: Any) -> bool:
    return isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__")


def _check_has_ids(dataset: Any, id_of: IdOf | None) -> None:
    if id_of is None and _is_stream(dataset):
        raise TypeError(
            f"{type(dataset).__name__} has no indices to tell its samples by: pass id_of=, a function from a sample to "
            "its number or name"
        )
