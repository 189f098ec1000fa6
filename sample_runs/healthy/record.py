"""A run without incident: warm-up and cosine decay, clipping, the scheduler gated on executed steps.

Run it from the repository's root: `python -m sample_runs.healthy.record --out runs/again`.
"""

from pathlib import Path

import torch
from torch import nn

from recorder import FlightRecorder
from sample_runs.options import output


def record(out: Path, steps: int = 600) -> None:
    """A regression with nothing wrong in it."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    w_true = torch.randn(16, 1)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=50)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps - 50)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], milestones=[50])

    with FlightRecorder(out, model, optimizer, scheduler=scheduler, max_norm=1.0, deep_every=50) as recorder:
        for step in range(steps):
            x = torch.randn(64, 16)
            y = torch.tanh(x @ w_true) + 0.1 * torch.randn(64, 1)
            with recorder.transition(batch_id=step) as t:
                optimizer.zero_grad()
                t.observe_inputs(x)
                loss = nn.functional.mse_loss(model(x), y)
                t.observe_loss(loss, count=len(x))
                loss.backward()
                t.clip_grad_norm_()
                optimizer.step()
                if t.executed:
                    scheduler.step()


if __name__ == "__main__":
    record(output(__file__))
