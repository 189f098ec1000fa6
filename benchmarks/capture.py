"""What a capture costs: how long the training waits for one, and what being ready for one costs every row.

    python -m benchmarks.capture [--parameters 100] [--repeats 5]

The wait is given as a ratio to copying the parameters once (`[p.clone() for p in parameters]`), for a capture without
the optimizer's state (SGD) and with it (Adam: three times the numbers). The cost of a row is CPU time of its thread.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, thread_time

import torch
from torch import nn

from benchmarks.models import MODELS
from recorder import CapturePolicy, FlightRecorder

_WIDTH = 2048


def wait(millions: int, adam: bool, repeats: int) -> tuple[float, float]:
    """Median seconds of a capture, and of one copy of the parameters."""
    model = nn.Sequential(*[nn.Linear(_WIDTH, _WIDTH, bias=False) for _ in range(millions * 10**6 // _WIDTH**2)])
    kind = torch.optim.Adam if adam else torch.optim.SGD
    optimizer = kind(model.parameters(), lr=1e-4)
    policy = CapturePolicy(triggers=[], most=repeats, max_bytes=2**40, max_parameters=10**10)
    waits, copies = [], []
    with TemporaryDirectory() as folder:
        for index in range(repeats + 2):
            # A run each, since the captures of one run wait for the disk of the one before.
            with FlightRecorder(Path(folder) / str(index), model, optimizer, deep_every=0, capture=policy) as recorder:
                for row in range(3):
                    with recorder.transition() as t:
                        t.observe_batch(torch.ones(1))
                        for parameter in model.parameters():
                            parameter.grad = torch.zeros_like(parameter)
                        if row == 2:
                            started = perf_counter()
                            copied = [p.detach().clone() for p in model.parameters()]
                            copies.append(perf_counter() - started)
                            del copied
                            started = perf_counter()
                            recorder.capture("measured")
                            waits.append(perf_counter() - started)
                        optimizer.step()
    return median(waits[2:]), median(copies[2:])


def readiness(steps: int) -> tuple[float, float]:
    """Median CPU seconds of a recorded step of the tiny MLP, without a policy and with one that never trips."""
    times: dict[bool, list[float]] = {False: [], True: []}
    with TemporaryDirectory() as folder:
        loops = {}
        for ready in times:
            work = MODELS["tiny"]("cpu")
            policy = CapturePolicy(triggers=[]) if ready else None
            loops[ready] = work, FlightRecorder(Path(folder) / str(ready), work.model, work.optimizer, capture=policy)
        for _ in range(steps):
            for ready, (work, recorder) in loops.items():
                started = thread_time()
                with recorder.transition() as t:
                    t.observe_batch(torch.ones(32, 8))
                    work.optimizer.zero_grad()
                    loss = work.loss()
                    t.observe_loss(loss)
                    loss.backward()
                    work.optimizer.step()
                times[ready].append(thread_time() - started)
        for _, recorder in loops.values():
            recorder.close()
    return median(times[False]), median(times[True])


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--parameters", type=int, default=100, help="millions of parameters")
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--steps", type=int, default=1000)
    given = options.parse_args()
    torch.set_num_threads(1)
    for adam in (False, True):
        waited, copied = wait(given.parameters, adam, given.repeats)
        name = "with Adam's state" if adam else "parameters"
        print(f"{given.parameters} M, {name:<18} {waited * 1e3:8.1f} ms, {waited / copied:.2f} times one copy of them")
    without, ready = readiness(given.steps)
    print(f"being ready: {(ready - without) * 1e6:.0f} us of CPU a row (tiny MLP, {without * 1e3:.3f} ms a step)")


if __name__ == "__main__":
    main()
