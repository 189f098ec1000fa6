"""Real loops, recorded and opened again: each test says only what its loop does otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="real loops need the extra [torch]")

from recorder import FlightRecorder, Transition  # noqa: E402  # after the skip
from spikeview.importers import open_run  # noqa: E402  # after the skip
from spikeview.rules.diagnosis import Diagnosis, diagnose  # noqa: E402  # after the skip
from spikeview.rules.finding import CheckResult  # noqa: E402  # after the skip
from spikeview.run import Run  # noqa: E402  # after the skip


def mlp() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))


def sgd(model: Any) -> Any:
    return torch.optim.SGD(model.parameters(), lr=0.02)


@dataclass
class Loop:
    """What a loop trains with. Its batches come from a generator of their own, the same in every run."""

    model: Any
    optimizer: Any
    recorder: FlightRecorder
    scaler: Any
    batch: int
    noise: float

    def loss(self, x: Any, y: Any) -> Any:
        return torch.nn.functional.mse_loss(self.model(x), y)

    def batches(self, rows: int, seed: int = 11) -> Iterator[tuple[Any, Any]]:
        generator = torch.Generator().manual_seed(seed)
        for _ in range(rows):
            x = torch.randn(self.batch, 8, generator=generator)
            yield x, x.sum(1, keepdim=True) + self.noise * torch.randn(self.batch, 1, generator=generator)


Step = Callable[[Loop, Transition, int, Any, Any], None]


def plain(loop: Loop, t: Transition, row: int, x: Any, y: Any) -> None:
    """One step as it should be."""
    loop.optimizer.zero_grad()
    loss = loop.loss(x, y)
    t.observe_loss(loss)
    loss.backward()
    t.clip_grad_norm_()
    loop.optimizer.step()


def record(
    path: Path,
    step: Step = plain,
    rows: int = 120,
    *,
    model: Callable[[], Any] = mlp,
    optimizer: Callable[[Any], Any] = sgd,
    scaler: Any = None,
    batch: int = 8,
    noise: float = 0.3,
    accumulating: Callable[[int], bool] = lambda row: False,
    batch_id: Callable[[int], Any] = lambda row: row,
    after: Callable[[Loop], None] = lambda loop: None,
    **settings: Any,
) -> Run:
    """Train for so many rows, each by `step`, and open what was recorded; no row is deep unless that is asked for."""
    torch.set_num_threads(1)
    torch.manual_seed(3)
    trained = model()
    own = optimizer(trained)
    with FlightRecorder(path, trained, own, scaler=scaler, **{"deep_every": 0, **settings}) as recorder:
        loop = Loop(trained, own, recorder, scaler, batch, noise)
        for row, (x, y) in enumerate(loop.batches(rows)):
            with recorder.transition(batch_id=batch_id(row), accumulating=accumulating(row)) as t:
                step(loop, t, row, x, y)
        after(loop)
    return open_run(path)


def check(run: Run | Diagnosis, name: str) -> CheckResult:
    diagnosis = diagnose(run) if isinstance(run, Run) else run
    return next(each for each in diagnosis.checks if each.id == name)
