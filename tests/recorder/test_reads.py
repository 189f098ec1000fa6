"""The always-on tier never waits for a device: it reads no tensor back as a scalar."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch.nn.functional import mse_loss
from torch.utils._python_dispatch import TorchDispatchMode

READS = ("aten::_local_scalar_dense", "aten::item", "aten::is_nonzero", "aten::equal")


class ScalarReads(TorchDispatchMode):
    """Counts the operations that would stop the host until a device has answered."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.name in READS:
            self.seen[func._schema.name] += 1
        return func(*args, **(kwargs or {}))


def reads_of_a_loop(recorder: Any, model: Any, optimizer: Any, scaler: Any, batches: Any) -> int:
    total = 0
    for index, (x, y) in enumerate(batches(6)):
        with ScalarReads() as reads:
            optimizer.zero_grad()
            if recorder is None:
                scaler.scale(mse_loss(model(x), y)).backward()
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
            else:
                with recorder.transition(batch_id=index) as t:
                    t.observe_inputs(x)
                    loss = mse_loss(model(x), y)
                    t.observe_loss(loss, count=len(x), per_example=(model(x) - y).square())
                    t.record(tokens=loss.detach() * 2)
                    scaler.scale(loss).backward()
                    t.clip_grad_norm_()
                    scaler.step(optimizer)
                    scaler.update()
        total += sum(reads.seen.values())
    return total


@pytest.mark.parametrize("enabled", [True, False], ids=["scaler", "no-scaler"])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_the_recorder_adds_no_scalar_read(record: Any, mlp: Any, batches: Any, kind: Any, enabled: bool) -> None:
    counts = []
    for watched in (False, True):
        model = mlp()
        optimizer = kind(model.parameters(), lr=0.01)
        scaler = torch.amp.GradScaler(next(model.parameters()).device.type, enabled=enabled)
        recorder = record(model, optimizer, scaler=scaler, max_norm=1.0, deep_every=3) if watched else None
        counts.append(reads_of_a_loop(recorder, model, optimizer, scaler, batches))
    assert counts[1] == counts[0]


def test_asking_for_executed_after_a_fused_step_is_the_one_read(record: Any, mlp: Any, batches: Any) -> None:
    """It goes through numpy on a CPU; on a device it is a copy. Without asking there is none."""
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)
    scaler = torch.amp.GradScaler(next(model.parameters()).device.type)
    with record(model, optimizer, scaler=scaler) as recorder:
        count = reads_of_a_loop(recorder, model, optimizer, scaler, batches)
    assert count == 0


@pytest.mark.cuda
def test_a_transition_on_a_gpu_never_synchronises(record: Any) -> None:
    """CUDA itself is told to raise on any synchronisation while the recorder's own code runs."""
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    x = torch.randn(32, 64, device="cuda")
    with record(model, optimizer, max_norm=1.0, deep_every=4, capacity=64) as recorder:
        for index in range(10):
            torch.cuda.set_sync_debug_mode("error")
            try:
                with recorder.transition(batch_id=index) as t:
                    optimizer.zero_grad()
                    t.observe_inputs(x)
                    loss = model(x).square().mean()
                    t.observe_loss(loss)
                    loss.backward()
                    t.clip_grad_norm_()
                    optimizer.step()
            finally:
                torch.cuda.set_sync_debug_mode("default")
    assert record.column("executed_n") == list(range(1, 11))
    assert record.events("recorder_fault") == []
