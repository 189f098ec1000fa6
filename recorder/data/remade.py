"""A batch made again from its id."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch.utils.data import BatchSampler, DataLoader, IterableDataset, default_collate

from recorder.data.fetching import IdOf, items, listed
from recorder.data.identified import IndexedCollate, IndexedDataset, NamedCollate
from recorder.sample_ids import SampleIds, as_text, from_text


def batch(
    source: Any,
    ids: str | SampleIds | Iterable[Any],
    *,
    collate_fn: Callable[[Any], Any] | None = None,
    id_of: IdOf | None = None,
) -> Any:
    """The batch of these ids: what `identified` yielded beside them, or a row's batch id as text.

    `source` is the loader, plain or identified, or its dataset with the `collate_fn` that the loader had (torch's
    default otherwise). With `id_of` the dataset is read from its beginning until each id was found. What the dataset
    draws at random it draws anew. Raises ValueError for a text that is no list of samples and for an empty list,
    IndexError or KeyError for a sample that the dataset does not have.
    """
    wanted = _listed(ids)
    dataset, collate, loader = source, collate_fn, None
    if isinstance(source, DataLoader):
        dataset, loader = source.dataset, source
        collate = collate or source.collate_fn
        if isinstance(collate, NamedCollate):
            id_of = id_of or collate.id_of
        if isinstance(collate, IndexedCollate | NamedCollate):
            collate = collate.collate
    if isinstance(dataset, IndexedDataset):
        dataset = dataset._dataset
    collate = default_collate if collate is None else collate
    single = loader is not None and loader.batch_sampler is None
    if id_of is not None:
        return collate(_found(dataset, wanted, id_of, single))
    if isinstance(dataset, IterableDataset):
        raise TypeError(f"{type(dataset).__name__} has no indices: pass the id_of= that its batches were identified by")
    _check_there(dataset, wanted)
    if not single:
        return collate(items(dataset, wanted))
    lone = len(wanted) == 1 and not isinstance(getattr(loader, "sampler", None), BatchSampler)
    return collate(dataset[wanted[0] if lone else wanted])


def _listed(ids: str | SampleIds | Iterable[Any]) -> list[Any]:
    if not isinstance(ids, str | SampleIds | Iterable):
        raise TypeError(f"a {type(ids).__name__} names no samples: give what came with the batch, or a row's batch_id")
    found = from_text(str(ids)) if isinstance(ids, str | SampleIds) else list(ids)
    if found is None:
        raise ValueError(f"{str(ids)[:80]!r} is no list of samples, such as [0-63]: it was not made by identified")
    if not found:
        raise ValueError("no samples are named, and of none no batch can be made")
    return found


def _check_there(dataset: Any, wanted: list[Any]) -> None:
    count = len(dataset) if hasattr(dataset, "__len__") else None
    beyond = [each for each in wanted if isinstance(each, int) and count is not None and each >= count]
    if beyond:
        raise IndexError(f"sample {beyond[0]} is not in the dataset, which has {count:,}: is it the one of the run?")


def _found(dataset: Any, wanted: list[Any], id_of: IdOf, single: bool) -> Any:
    """The samples of these ids, in their order; without automatic batching, what was yielded with them."""
    samples = dataset if isinstance(dataset, IterableDataset) else (dataset[at] for at in range(len(dataset)))
    keys = [_key(each) for each in wanted]
    lacking, found = set(keys), dict[Any, Any]()
    for sample in samples:
        own = id_of(sample)
        if single and [_key(each) for each in listed(own)] == keys:
            return sample
        if not single and (key := _key(own)) in lacking:
            found[key] = sample
            lacking.remove(key)
            if not lacking:
                return [found[each] for each in keys]
    first = next(each for each, key in zip(wanted, keys, strict=True) if key in lacking)
    raise KeyError(f"no sample of the dataset has the id {first!r}: is it the one of the run?")


def _key(sample: Any) -> Any:
    """What an id comes back as from a run: a tensor as its number, bytes as their repr, a list as a tuple."""
    if type(sample) in (int, str):
        return sample
    text = as_text([sample])
    [again] = from_text(text) or [None]
    return again if type(again) in (int, str) else (text,)
