"""What recording on all ranks costs, as ratios to the same training without a recorder, over gloo on the CPU.

    python -m benchmarks.ranks [--ranks 2] [--steps 100]

Under DDP and FSDP2, for an MLP of 321 parameters and one of 10.9 million. Each variant trains a copy of the model on
every rank, and they take their steps in turn, so that a change of the machine's speed meets them all. Printed are rank
0's median time of a step and the ratio of the medians to the plain loop, which clips by torch's function. With as many
ranks as cores, one thread each, a rank that is late keeps the others waiting: so it is in a training.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import torch
import torch._dynamo  # an optimizer imports it when it first steps: once for all ranks
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from recorder import FlightRecorder

WIDTHS = {"MLP of 321": ([8, 32, 1], 32), "MLP of 10.9 M": ([1024, 2048, 2048, 1792, 512], 128)}
Step = Callable[[], None]


def replicated(model: nn.Module, world: int) -> nn.Module:
    """Under DDP."""
    return DistributedDataParallel(model)


def sharded(model: nn.Module, world: int) -> nn.Module:
    """Under FSDP2, each layer by itself."""
    mesh = init_device_mesh("cpu", (world,))
    for module in [*model.children(), model]:
        if list(module.parameters()):
            fully_shard(module, mesh=mesh)
    return model


WRAPPERS = {"DDP": replicated, "FSDP2": sharded}


def loop(
    widths: list[int], batch: int, wrap: Callable[[nn.Module], nn.Module], folder: Path | None
) -> tuple[Step, Step]:
    """One step of a training, recorded where there is a folder; and what ends it."""
    layers = [each for before, after in pairwise(widths) for each in (nn.Linear(before, after), nn.Tanh())]
    model = wrap(nn.Sequential(*layers[:-1]))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    x, y = torch.randn(batch, widths[0]), torch.randn(batch, widths[-1])
    if folder is None:

        def plain() -> None:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

        return plain, lambda: None
    recorder = FlightRecorder(folder, model, optimizer, max_norm=1.0)

    def recorded() -> None:
        with recorder.transition(batch_id="same") as t:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            t.observe_loss(loss)
            loss.backward()
            t.clip_grad_norm_()
            optimizer.step()

    return recorded, recorder.close


def measure(rank: int, world: int, steps: int, folder: Path) -> None:
    """All variants, on one rank; rank 0 prints."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=world)
    for name, (widths, batch) in WIDTHS.items():
        for wrapper, wrap in WRAPPERS.items():
            times: dict[str, list[float]] = {"plain": [], "recorded": []}
            with ExitStack() as ends:
                turns = {}
                for kind in times:
                    torch.manual_seed(0)
                    run = folder / f"{name}-{wrapper}" if kind == "recorded" else None
                    turns[kind], end = loop(widths, batch, lambda model: wrap(model, world), run)  # noqa: B023
                    ends.callback(end)
                for index in range(steps + 5):
                    for kind, step in turns.items():
                        distributed.barrier()
                        started = perf_counter()
                        step()
                        if index >= 5:
                            times[kind].append(perf_counter() - started)
            if rank == 0:
                before, after = (median(times[kind]) * 1e3 for kind in ("plain", "recorded"))
                print(f"{wrapper:<6} {name:<14} {before:9.2f} ms {after:9.2f} ms  {after / before:.2f}", flush=True)
    distributed.destroy_process_group()


def main() -> None:
    """Fork the ranks and wait for them."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ranks", type=int, default=2)
    options.add_argument("--steps", type=int, default=100)
    given = options.parse_args()
    print(f"{given.ranks} ranks                    plain     recorded  ratio", flush=True)
    with TemporaryDirectory() as folder:
        children = []
        for rank in range(given.ranks):
            child = os.fork()
            if child == 0:
                try:
                    measure(rank, given.ranks, given.steps, Path(folder))
                finally:
                    os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
