"""An update that points against its own gradient: small batches, Adam, nothing broken.

Run it from the repository's root: `python -m sample_runs.update_against_gradient.record --out runs/again`.
"""

from pathlib import Path

import torch
from torch import nn

from recorder import FlightRecorder, below
from sample_runs.options import output

THRESHOLD = -0.30


def record(out: Path, steps: int = 400) -> None:
    """Adam on batches of four; the trigger tells where the cosine falls under the threshold."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    w_true = torch.randn(8, 1)
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loss_fn = nn.MSELoss()
    trip = below("update_cosine", THRESHOLD)
    told = False

    with FlightRecorder(out, model, optimizer, max_norm=1.0, deep_every=20, triggers=[trip]) as recorder:
        for batch_id in range(steps):
            x = torch.randn(4, 8)
            y = x @ w_true
            with recorder.transition(batch_id=batch_id) as t:
                optimizer.zero_grad()
                loss = loss_fn(model(x), y)
                t.observe_loss(loss)
                loss.backward()
                t.clip_grad_norm_()
                optimizer.step()
            if recorder.tripped and not told:
                told = True
                after = loss_fn(model(x), y).item()
                recorder.note(f"loss on batch {batch_id} before and after its own step: {loss.item():.5f}, {after:.5f}")


if __name__ == "__main__":
    record(output(__file__))
