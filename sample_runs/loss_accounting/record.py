"""A displayed loss that doubles although no prediction changed: from one row on it is divided by half the targets.

Run it from the repository's root: `python -m sample_runs.loss_accounting.record --out runs/again`.
"""

from pathlib import Path

import torch
from torch import nn

from recorder import FlightRecorder
from sample_runs.options import output

TARGETS = 4000
CLASSES = 32


def record(out: Path, steps: int = 200, wrong_from: int = 120) -> None:
    """A classifier over 4,000 targets a batch; the new logger divides their summed loss by 2,000."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    truth = torch.randn(16, CLASSES)
    model = nn.Linear(16, CLASSES)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    with FlightRecorder(out, model, optimizer, max_norm=1.0, deep_every=20) as recorder:
        for step in range(steps):
            x = torch.randn(TARGETS, 16)
            y = torch.distributions.Categorical(logits=0.5 * x @ truth).sample()
            with recorder.transition(batch_id=step) as t:
                optimizer.zero_grad()
                total = nn.functional.cross_entropy(model(x), y, reduction="sum")
                count = TARGETS // 2 if step >= wrong_from else TARGETS
                t.observe_loss(total / count, count=count)
                (total / TARGETS).backward()
                t.clip_grad_norm_()
                optimizer.step()


if __name__ == "__main__":
    record(output(__file__))
