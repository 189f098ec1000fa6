"""Real loops on small models, recorded and read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the recorder's tests need the extra [torch]")

from recorder import FlightRecorder  # noqa: E402  # after the skip
from recorder.store import read_run  # noqa: E402  # after the skip

Rows = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def _one_thread_and_a_seed() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> str:
    """Every device there is; where there is no GPU its tests are skipped."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return str(request.param)


class Recording:
    """Makes recorders in one folder and reads back what the last of them wrote."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "run"

    def __call__(self, model: torch.nn.Module, optimizer: Any, **settings: Any) -> FlightRecorder:
        return FlightRecorder(self.path, model, optimizer, **settings)

    def rows(self, optimizer: str | None = None) -> Rows:
        rows: Rows = read_run(self.path).table.to_pylist()
        return [row for row in rows if optimizer in (None, row["optimizer"])]

    def column(self, name: str, optimizer: str | None = None) -> list[Any]:
        return [row[name] for row in self.rows(optimizer)]

    def events(self, kind: str) -> Rows:
        return [dict(event) for event in read_run(self.path).events if event["kind"] == kind]


@pytest.fixture
def record(tmp_path: Path) -> Recording:
    return Recording(tmp_path)


@pytest.fixture
def mlp(device: str) -> Callable[[], torch.nn.Module]:
    def make() -> torch.nn.Module:
        torch.manual_seed(3)
        layers = [torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)]
        return torch.nn.Sequential(*layers).to(device)

    return make


@pytest.fixture
def batches(device: str) -> Callable[[int], Iterator[tuple[torch.Tensor, torch.Tensor]]]:
    def make(count: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        generator = torch.Generator().manual_seed(11)
        for _ in range(count):
            x = torch.randn(8, 8, generator=generator)
            yield x.to(device), x.sum(1, keepdim=True).to(device)

    return make
