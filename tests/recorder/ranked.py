"""Trainings of several ranks, each a process of its own that records for itself, over gloo on the CPU.

    python -m tests.recorder.ranked FOLDER NAME...

runs them one after the other, into FOLDER/NAME, and prints a line of JSON for each: the exit statuses of its ranks, and
what these had to say. One import of torch serves all: ranks are forked before anything of it is used.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # an optimizer imports it when it first steps: once for all ranks
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from recorder import FlightRecorder

ROWS = 12


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))


def batches(rank: int, rows: int, poison: int = -1) -> Iterator[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(100 + rank)
    for row in range(rows):
        x = torch.randn(16, 8, generator=generator)
        y = x.sum(1, keepdim=True) + 0.3 * torch.randn(16, 1, generator=generator)
        yield x, y * 1000 if row == poison else y


def reduced(path: Path, rank: int, rows: int = 50, odd: int = 2, dies: int = -1) -> None:
    """DDP; one rank has a batch that is far out."""
    ours = DistributedDataParallel(model())
    optimizer = torch.optim.SGD(ours.parameters(), lr=0.05)
    with FlightRecorder(path, ours, optimizer, max_norm=1.0) as recorder:
        for row, (x, y) in enumerate(batches(rank, rows, 40 if rank == odd else -1)):
            with recorder.transition(batch_id=f"{rank}-{row}") as t:
                if rank == dies and row == 12:
                    os.kill(os.getpid(), signal.SIGKILL)
                optimizer.zero_grad()
                t.observe_inputs(x)
                loss = nn.functional.mse_loss(ours(x), y)
                t.observe_loss(loss)
                loss.backward()
                t.clip_grad_norm_()
                optimizer.step()
    distributed.barrier()


def killed(path: Path, rank: int) -> None:
    reduced(path, rank, rows=40, odd=-1, dies=1)


def accumulated(path: Path, rank: int) -> None:
    """DDP, of every four batches the first three within no_sync()."""
    ours = DistributedDataParallel(model())
    optimizer = torch.optim.SGD(ours.parameters(), lr=0.05)
    with FlightRecorder(path, ours, optimizer, max_norm=1.0) as recorder:
        for row, (x, y) in enumerate(batches(rank, ROWS)):
            last = row % 4 == 3
            with recorder.transition(accumulating=not last) as t:
                with nullcontext() if last else ours.no_sync():
                    loss = nn.functional.mse_loss(ours(x), y) / 4
                    loss.backward()
                t.observe_loss(loss)
                if last:
                    t.clip_grad_norm_()
                    optimizer.step()
                    optimizer.zero_grad()
                else:
                    t.measure_grad_norm()
    unwrapped(path.with_name("unwrapped"), rank)


def unwrapped(path: Path, rank: int) -> None:
    """Nothing that torch knows of reduces the gradients: the loop may, by hand."""
    ours = model()
    optimizer = torch.optim.SGD(ours.parameters(), lr=0.05)
    with FlightRecorder(path, ours, optimizer) as recorder:
        for x, y in batches(rank, 3):
            with recorder.transition() as t:
                optimizer.zero_grad()
                nn.functional.mse_loss(ours(x), y).backward()
                t.clip_grad_norm_()
                optimizer.step()


def apart(path: Path, rank: int) -> None:
    """DDP, where rank 1 alone declines two steps, and all decline one because of a loss that is NaN on rank 1."""
    ours = DistributedDataParallel(model())
    optimizer = torch.optim.SGD(ours.parameters(), lr=0.05)
    with FlightRecorder(path, ours, optimizer) as recorder:
        for row, (x, y) in enumerate(batches(rank, 40)):
            with recorder.transition() as t:
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(ours(x), y * (float("nan") if (rank, row) == (1, 30) else 1.0))
                t.observe_loss(loss)
                loss.backward()
                t.measure_grad_norm()
                if rank == 1 and row in (20, 22):
                    t.skip("gated")
                elif t.should_step:
                    optimizer.step()


def with_spare() -> nn.Sequential:
    """The model with a parameter that no forward uses, and so without a gradient."""
    ours = model()
    ours.register_parameter("spare", nn.Parameter(torch.ones(4)))
    return ours


def sharded(path: Path, rank: int, shape: tuple[int, ...] = (2,)) -> None:
    """FSDP2. The norm with every clipping must be that of the whole model; a norm that is only measured is local."""
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("replicate", "shard")[-len(shape) :])
    ours = with_spare()
    for module in (ours[0], ours[2], ours):
        fully_shard(module, mesh=mesh)
    told = train_whole(path, ours, batches(rank, ROWS), count_exchanges())
    os.write(1, json.dumps({"rank": rank, **told}).encode() + b"\n")  # at once: ranks write to one pipe


def whole(path: Path, rank: int, world: int = 2) -> None:
    """The same training without shards: one process has the batches of all ranks."""
    each = zip(*(batches(each, ROWS) for each in range(world)), strict=True)
    train_whole(
        path, with_spare(), ((torch.cat(x), torch.cat(y)) for x, y in (zip(*b, strict=True) for b in each)), [0]
    )


def train_whole(
    path: Path, ours: nn.Module, data: Iterator[tuple[Tensor, Tensor]], exchanges: list[int]
) -> dict[str, Any]:
    """Clips, on row 6 by torch's function, and on row 5 only measures.

    Gives the norms that the recorder returned, how many exchanges each took, and how many the measuring did.
    """
    optimizer = torch.optim.Adam(ours.parameters(), lr=0.01)
    clipped, norms, alone = [], [], 0
    with FlightRecorder(path, ours, optimizer, max_norm=2.0, deep_every=1) as recorder:
        for row, (x, y) in enumerate(data):
            with recorder.transition() as t:
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(ours(x), y)
                t.observe_loss(loss)
                loss.backward()
                before = exchanges[0]
                if row == 5:
                    t.measure_grad_norm()
                    alone = exchanges[0] - before
                elif row == 6:
                    t.observe_grad_norm(nn.utils.clip_grad_norm_(ours.parameters(), 2.0), 2.0)
                else:
                    norms.append(float(t.clip_grad_norm_()))
                    clipped.append(exchanges[0] - before)
                optimizer.step()
    return {"norms": norms, "exchanges": sorted(set(clipped)), "alone": alone}


def count_exchanges() -> list[int]:
    """How often all_reduce is called from now on, but for FSDP's own, which does not go through it."""
    count, reduce = [0], distributed.all_reduce

    def counted(*args: Any, **kwargs: Any) -> Any:
        count[0] += 1
        return reduce(*args, **kwargs)

    distributed.all_reduce = counted
    return count


def scaled(path: Path, rank: int) -> None:
    """FSDP2 under a scaler: rank 1's share alone overflows on row 3."""
    ours = model()
    fully_shard(ours, mesh=init_device_mesh("cpu", (2,)))
    optimizer = torch.optim.SGD(ours.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with FlightRecorder(path, ours, optimizer, scaler=scaler, max_norm=1.0) as recorder:
        for row, (x, y) in enumerate(batches(rank, 6)):
            with recorder.transition() as t:
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(ours(x), y)
                t.observe_loss(loss)
                scaler.scale(loss).backward()
                if (rank, row) == (1, 3):
                    next(iter(ours.parameters())).grad.to_local()[0, 0] = float("inf")  # type: ignore[union-attr]
                t.clip_grad_norm_()
                scaler.step(optimizer)
                scaler.update()


LOOPS: dict[str, tuple[int, Callable[[Path, int], None]]] = {
    "reduced": (4, reduced),
    "killed": (2, killed),
    "accumulated": (2, accumulated),
    "apart": (3, apart),
    "sharded": (2, sharded),
    "whole": (1, whole),
    "hybrid": (4, lambda path, rank: sharded(path, rank, (2, 2))),
    "whole_of_four": (1, lambda path, rank: whole(path, rank, 4)),
    "scaled": (2, scaled),
}


def main(folder: Path, names: list[str]) -> None:
    for name in names:
        world, loop = LOOPS[name]
        reading, writing = os.pipe()
        children = []
        for rank in range(world):
            child = os.fork()
            if child == 0:
                os.dup2(writing, 1)
                os._exit(_one(folder / name, rank, world, loop))
            children.append(child)
        os.close(writing)
        with os.fdopen(reading) as said:
            lines = said.read().splitlines()
        statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        print(json.dumps({"name": name, "statuses": statuses, "said": lines}), flush=True)  # noqa: T201  # what it prints is what it is for


def _one(path: Path, rank: int, world: int, loop: Callable[[Path, int], None]) -> int:
    try:
        torch.set_num_threads(1)
        distributed.init_process_group(
            "gloo",
            init_method=f"file://{path}-meeting",
            rank=rank,
            world_size=world,
            timeout=timedelta(seconds=100),
        )
        loop(path, rank)
    except Exception as error:  # noqa: BLE001  # told by the exit status
        os.write(1, f"{rank} {type(error).__name__}\n".encode())
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
