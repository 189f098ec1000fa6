"""One small training, written by hand with the recorder: what a framework's rows are held against."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from recorder import FlightRecorder

loss_of = torch.nn.functional.mse_loss


class Pieces:
    """Model, optimizer, scheduler and loader of one training, always the same."""

    def __init__(self, fused: bool = False) -> None:
        torch.manual_seed(3)
        layers = torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)
        self.model = torch.nn.Sequential(*layers)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01, fused=fused)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, gamma=0.5)
        x = torch.randn(40, 8, generator=torch.Generator().manual_seed(5))
        self.loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), 4)


def by_hand(run: Path, every: int = 1, epochs: int = 1, dtype: Any = None, scaler: Any = None, **how: Any) -> Path:
    """The loop without a framework. `how`: max_norm, clip_value, fused, and a scheduler that steps whatever happens."""
    pieces = Pieces(how.get("fused", False))
    model, optimizer, scheduler = pieces.model, pieces.optimizer, pieces.scheduler
    scaler = scaler or torch.amp.GradScaler("cpu", enabled=False)
    named = torch.nn.ModuleDict({how["prefix"].rstrip("."): model}) if "prefix" in how else model
    with FlightRecorder(run, named, optimizer, scaler=scaler, scheduler=scheduler, deep_every=1) as recorder:
        for epoch in range(epochs):
            for index, (x, y) in enumerate(pieces.loader):
                last = (index + 1) % every == 0 or index + 1 == len(pieces.loader)
                with recorder.transition(f"{epoch}:{index}", accumulating=not last) as t:
                    with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
                        out = model(x)
                    loss = loss_of(out.float(), y)
                    t.observe_loss(loss)
                    scaler.scale(loss / every).backward()
                    if not last:
                        continue
                    scaler.unscale_(optimizer)
                    t.measure_grad_norm()
                    if how.get("max_norm"):
                        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), how["max_norm"])
                        t.observe_grad_norm(norm, max_norm=how["max_norm"])
                    if how.get("clip_value"):
                        torch.nn.utils.clip_grad_value_(model.parameters(), how["clip_value"])
                    scaler.step(optimizer)
                    scaler.update()
                    if how.get("fused") or how.get("always") or t.executed:
                        scheduler.step()
                    optimizer.zero_grad()
    return run
