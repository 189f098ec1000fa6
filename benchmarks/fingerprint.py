"""What the fingerprint of a checkpoint costs, beside saving it: `python -m benchmarks.fingerprint`."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import torch

from recorder.fingerprint import fingerprint

REPEATS = 9
SHAPES = {"10 M parameters in 8 tensors": (1580, 4), "6 M parameters in 1,000 tensors": (110, 500)}


def main() -> int:
    """Measure models of few and of many tensors, each with Adam's state."""
    torch.set_num_threads(2)
    for text, (width, layers) in SHAPES.items():
        model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(layers)])
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()

        def save(model: torch.nn.Module = model, optimizer: torch.optim.Optimizer = optimizer) -> None:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, io.BytesIO())

        def look(model: torch.nn.Module = model, optimizer: torch.optim.Optimizer = optimizer) -> None:
            fingerprint(model, {"optimizer": optimizer}, {}, {})

        seconds = [_median(what) for what in (look, save)]
        print(f"{text}: {seconds[0] * 1e3:.1f} ms, {seconds[0] / seconds[1]:.3f} of torch.save to memory")
    return 0


def _median(call: Callable[[], None]) -> float:
    times = []
    for _ in range(REPEATS):
        started = perf_counter()
        call()
        times.append(perf_counter() - started)
    return median(times)


if __name__ == "__main__":
    sys.exit(main())
