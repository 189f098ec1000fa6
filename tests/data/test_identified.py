"""Batches with the ids of their samples: the same batches, and the right ids, whatever the loader is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="loaders need the extra [torch]")

from torch.utils.data import (  # noqa: E402  # after the skip
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
    get_worker_info,
)

from recorder.data import batch, identified  # noqa: E402  # after the skip
from recorder.sample_ids import SampleIds  # noqa: E402  # after the skip

COUNT = 50


class Noisy(Dataset[Any]):
    """Samples that hold their index, and a draw from their worker's generator."""

    scale = 1.0

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.tensor(index), self.scale * torch.rand(3)


class AtOnce(Noisy):
    """A dataset that is asked for whole batches."""

    def __getitems__(self, indices: list[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        drawn = torch.rand(len(indices), 3)
        return [(torch.tensor(index), row) for index, row in zip(indices, drawn, strict=True)]


class Stream(IterableDataset[Any]):
    """Samples of two workers or one, each with an id of its own."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker = get_worker_info()
        first, apart = (0, 1) if worker is None else (worker.id, worker.num_workers)
        return ({"id": index, "x": torch.rand(2)} for index in range(first, COUNT, apart))


def rescale(worker: int) -> None:
    """As users set up the dataset of a worker."""
    get_worker_info().dataset.scale = 10.0


def summed(samples: list[Any]) -> dict[str, Any]:
    return {"which": [int(index) for index, _ in samples], "sum": torch.stack([x for _, x in samples]).sum(0)}


def id_of(sample: dict[str, Any]) -> int:
    return int(sample["id"])


def same(left: Any, right: Any) -> bool:
    """Bit for bit, whatever they are nested in."""
    if isinstance(left, torch.Tensor):
        return bool(torch.equal(left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)):
        return type(left) is type(right) and len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def epochs(loader: Any, count: int = 2) -> list[Any]:
    torch.manual_seed(7)
    yielded = [each for _ in range(count) for each in loader]
    return [*yielded, torch.rand(1)]  # where the loop's own generator stands afterwards


LOADERS = {
    "plain": {"batch_size": 8},
    "shuffled": {"batch_size": 8, "shuffle": True, "generator": "own"},
    "workers": {"batch_size": 8, "shuffle": True, "num_workers": 2, "worker_init_fn": rescale},
    "persistent": {"batch_size": 8, "shuffle": True, "num_workers": 2, "persistent_workers": True},
    "collate": {"batch_size": 8, "drop_last": True, "collate_fn": summed},
    "batch_sampler": {"batch_sampler": BatchSampler(RandomSampler(range(COUNT)), 7, False)},
    "distributed": {"batch_size": 8, "sampler": DistributedSampler(range(COUNT), 4, 2)},  # type: ignore[arg-type]
    "one_by_one": {"batch_size": None, "shuffle": True},
}


@pytest.mark.parametrize(
    ("name", "dataset"), [*((name, Noisy) for name in LOADERS), ("shuffled", AtOnce), ("collate", AtOnce)]
)
def test_the_same_batches_with_the_indices_they_were_made_of(name: str, dataset: type[Noisy]) -> None:
    settings = dict(LOADERS[name])
    owned = settings.pop("generator", None)

    def loader() -> Any:
        own = {"generator": torch.Generator().manual_seed(3)} if owned else {}
        return DataLoader(dataset(), **own, **settings)

    *plain, after = epochs(loader())
    *named, left = epochs(identified(loader()))
    assert torch.equal(after, left)
    assert len(plain) == len(named) > 0
    for expected, (ids, found) in zip(plain, named, strict=True):
        assert same(expected, found)
        which = expected["which"] if isinstance(expected, dict) else expected[0].reshape(-1).tolist()
        assert list(ids) == which
        assert len(ids) == len(which)


def test_a_sampler_that_goes_on_where_it_was_and_an_epoch_that_is_set() -> None:
    sampler = DistributedSampler(range(COUNT), 2, 1, seed=5)  # type: ignore[arg-type]
    loader = DataLoader(Noisy(), batch_size=5, sampler=sampler)
    named = identified(loader)
    loader.sampler.set_epoch(3)
    assert [n for ids, _ in named for n in ids] == list(sampler)

    class Resumed(SequentialSampler):
        def __iter__(self) -> Iterator[int]:
            return iter(range(20, COUNT))

    resumed = identified(DataLoader(Noisy(), batch_size=16, sampler=Resumed(range(COUNT))))  # type: ignore[arg-type]
    assert [str(ids) for ids, _ in resumed] == ["[20-35]", "[36-49]"]


def test_batches_that_overtake_each_other_keep_their_ids() -> None:
    loader = DataLoader(Noisy(), batch_size=4, num_workers=2, in_order=False)
    for ids, (indices, _) in identified(loader):
        assert list(ids) == indices.tolist()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_is_told_by_what_its_samples_hold(workers: int) -> None:
    loader = DataLoader(Stream(), batch_size=6, num_workers=workers)
    *plain, _ = epochs(loader, 1)
    *named, _ = epochs(identified(loader, id_of=id_of), 1)
    for expected, (ids, found) in zip(plain, named, strict=True):
        assert same(expected, found)
        assert list(ids) == expected["id"].tolist()
    with pytest.raises(TypeError, match="Stream has no indices to tell its samples by: pass id_of="):
        identified(loader)


def test_names_and_the_loops_own_loader() -> None:
    class Files(Noisy):
        def __getitem__(self, index: int) -> Any:
            return {"path": f"{index:03}.jpg", "x": torch.tensor(index)}

    loader = DataLoader(Files(), batch_size=3)
    ids, _ = next(iter(identified(loader, id_of=lambda sample: sample["path"])))
    assert str(ids) == '["000.jpg","001.jpg","002.jpg"]'
    again = batch(loader, ids, id_of=lambda sample: sample["path"])
    assert again["x"].tolist() == [0, 1, 2]
    indices, (x, _) = next(iter(DataLoader(identified(Noisy()), batch_size=4)))
    assert indices.tolist() == x.tolist() == [0, 1, 2, 3]
    names, files = next(iter(DataLoader(identified(Files(), id_of=lambda sample: sample["path"]), batch_size=2)))
    assert (list(names), files["x"].tolist()) == (["000.jpg", "001.jpg"], [0, 1])
    streamed = DataLoader(identified(Stream(), id_of=id_of), batch_size=5)
    assert next(iter(streamed))[0].tolist() == [0, 1, 2, 3, 4]


class Fixed(Noisy):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.tensor(index), torch.full((3,), float(index))


@pytest.mark.parametrize("name", [name for name in LOADERS if name not in ("workers", "persistent")])
def test_a_batch_is_made_again_from_its_id(name: str) -> None:
    settings = {key: value for key, value in LOADERS[name].items() if key != "generator"}
    plain = DataLoader(Fixed(), **settings)  # type: ignore[arg-type]
    named = identified(plain)
    for ids, found in named:
        for source in (plain, named):
            assert same(batch(source, ids), found)
            assert same(batch(source, str(ids)), found)
        if name != "one_by_one":
            assert same(batch(Fixed(), str(ids), collate_fn=settings.get("collate_fn")), found)


def test_a_stream_is_read_until_the_batch_is_there() -> None:
    class Words(IterableDataset[Any]):
        def __iter__(self) -> Iterator[tuple[int, str]]:
            return iter([(3, "c"), (1, "a"), (2, "b"), (9, "z")])

    ids = SampleIds("[1,3]")
    assert batch(Words(), ids, collate_fn=list, id_of=lambda pair: pair[0]) == [(1, "a"), (3, "c")]
    with pytest.raises(KeyError, match="no sample of the dataset has the id 7"):
        batch(Words(), "[3,7]", collate_fn=list, id_of=lambda pair: pair[0])
    with pytest.raises(TypeError, match="Words has no indices"):
        batch(Words(), ids)


def test_what_cannot_be_fed_again_says_why() -> None:
    with pytest.raises(ValueError, match=r"'b-17' is no list of samples, such as \[0-63\]"):
        batch(Noisy(), "b-17")
    with pytest.raises(IndexError, match="sample 8217 is not in the dataset, which has 50"):
        batch(TensorDataset(torch.zeros(50)), "[3,8217]")
    with pytest.raises(ValueError, match="no samples are named"):
        batch(Noisy(), "[]")
    with pytest.raises(TypeError, match="a NoneType names no samples"):
        batch(Noisy(), None)  # type: ignore[arg-type]


class Doubled(Dataset[Any]):
    """Takes whatever index a sampler makes up."""

    def __getitem__(self, index: Any) -> Any:
        return 2 * torch.as_tensor(index["at"] if isinstance(index, dict) else index)


ODD = {
    "tensors of one number": (False, [torch.tensor(3), torch.tensor(4)], ["[3]", "[4]"]),
    "tensors": (False, [torch.tensor([3, 5]), torch.tensor([4, 1])], ["[3,5]", "[4,1]"]),
    "lists": (False, [[3, 5], [4, 1]], ["[3,5]", "[4,1]"]),
    "dicts": (False, [{"at": 3}, {"at": 4}], ['[{"at":3}]', '[{"at":4}]']),
    "tuples": (False, [(1, 2), (3, 4)], ["[[1,2]]", "[[3,4]]"]),
    "batches in tuples": (True, [(3, 5), (4, 1)], ["[3,5]", "[4,1]"]),
    "batches in tensors": (True, [torch.tensor([3, 5])], ["[3,5]"]),
    "batches in iterators": (True, [iter([3, 5]), iter([4, 1])], ["[3,5]", "[4,1]"]),
}


@pytest.mark.parametrize("name", ODD)
def test_whatever_a_sampler_yields_the_loop_goes_on(name: str) -> None:
    batched, given, texts = ODD[name]
    how: dict[str, Any] = {"batch_sampler": given} if batched else {"batch_size": None, "sampler": given}
    found = [(str(ids), batch) for ids, batch in identified(DataLoader(Doubled(), **how))]
    assert [text for text, _ in found] == texts
    if "iterators" not in name:  # which are read once
        assert same([batch for _, batch in found], list(DataLoader(Doubled(), **how)))


@pytest.mark.parametrize("batch_size", [None, 2])
@pytest.mark.parametrize(
    "name", [lambda n: torch.tensor(n), lambda n: bytes([n]), lambda n: {"n": n}, lambda n: [n, "a"], lambda n: n / 3]
)
def test_an_id_of_any_kind_leads_back_to_its_batch(name: Any, batch_size: int | None) -> None:
    class Counted(IterableDataset[Any]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(6))

    loader = DataLoader(Counted(), batch_size=batch_size)
    for ids, found in identified(loader, id_of=name):
        assert same(torch.as_tensor(batch(loader, str(ids), id_of=name)), torch.as_tensor(found))


def test_a_loader_is_identified_once() -> None:
    loader = identified(DataLoader(Fixed(), batch_size=4))
    assert [str(ids) for ids, _ in identified(loader)] == [str(ids) for ids, _ in loader]
    with pytest.raises(TypeError, match="identified already"):
        identified(loader, id_of=id_of)
