"""How often an update opposes its own gradient, by batch size: the rate of cosine < 0 over four seeds.

Run it from the repository's root: `python -m sample_runs.update_against_gradient.sweep`. The cosines are the
recorder's own column, read back from the runs it wrote.
"""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import nn

from recorder import FlightRecorder
from recorder.store import read_run

BATCH_SIZES = (256, 32, 8, 2)
SEEDS = range(4)


@dataclass(frozen=True)
class Worst:
    """The most anti-aligned step of a run: its cosine, and its batch's loss before and after it."""

    cosine: float
    loss_before: float
    loss_after: float


def run(out: Path, w_true: torch.Tensor, batch_size: int, seed: int, steps: int = 400) -> tuple[float, Worst]:
    """The share of steps with a negative cosine, and the worst of them."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loss_fn = nn.MSELoss()
    losses = np.empty((steps, 2))
    with FlightRecorder(out, model, optimizer, deep_every=0) as recorder:
        for step in range(steps):
            x = torch.randn(batch_size, 8)
            y = x @ w_true
            with recorder.transition(batch_id=step) as t:
                optimizer.zero_grad()
                loss = loss_fn(model(x), y)
                t.observe_loss(loss)
                loss.backward()
                t.measure_grad_norm()
                optimizer.step()
            losses[step] = loss.item(), loss_fn(model(x), y).item()
    cosines = read_run(out).table["update_cosine"].to_numpy()
    worst = int(np.argmin(cosines))
    return float(np.mean(cosines < 0)), Worst(float(cosines[worst]), *losses[worst].tolist())


def sweep() -> list[tuple[int, float, float, Worst]]:
    """For each batch size: lowest and highest rate over the seeds, and the worst step of all."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    w_true = torch.randn(8, 1)
    rows = []
    with TemporaryDirectory() as folder:
        for batch_size in BATCH_SIZES:
            results = [run(Path(folder) / f"{batch_size}-{seed}", w_true, batch_size, seed) for seed in SEEDS]
            rates = [rate for rate, _ in results]
            rows.append((batch_size, min(rates), max(rates), min((w for _, w in results), key=lambda w: w.cosine)))
    return rows


if __name__ == "__main__":
    print("  batch   cos<0 over 4 seeds   worst cos   loss on that batch")
    for batch_size, low, high, worst in sweep():
        verb = "rose" if worst.loss_after > worst.loss_before else "fell"
        change = f"{worst.loss_before:.4f} -> {worst.loss_after:.4f} {verb}"
        print(f"{batch_size:>7}   {low:>7.2%} to {high:>7.2%}   {worst.cosine:>9.3f}   {change}")
