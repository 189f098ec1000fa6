"""The clocks come apart: two steps are skipped by the scaler, and the scheduler moves on all the same.

Run it from the repository's root: `python -m sample_runs.amp_clock_drift.record --out runs/again`.
"""

from pathlib import Path

import torch
from torch import nn

from recorder import FlightRecorder
from sample_runs.options import output

OVERFLOWS = (2, 3)


def record(out: Path, steps: int = 6) -> None:
    """Six SGD steps under a scaler, of which two overflow."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.95)
    scaler = torch.amp.GradScaler("cpu")

    with FlightRecorder(
        out, model, optimizer, scaler=scaler, scheduler=scheduler, max_norm=1.0, deep_every=1
    ) as recorder:
        for step in range(steps):
            x = torch.randn(16, 4)
            y = x.sum(1, keepdim=True)
            with recorder.transition(batch_id=step) as t:
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(x), y)
                t.observe_loss(loss)
                scaler.scale(loss).backward()
                if step in OVERFLOWS:  # stands in for an fp16 overflow, while the gradients are still scaled
                    for parameter in model.parameters():
                        parameter.grad *= float("inf")
                t.clip_grad_norm_()
                scaler.step(optimizer)
                scaler.update()
                scheduler.step()  # the fault: it does not ask whether the step executed


if __name__ == "__main__":
    record(output(__file__))
