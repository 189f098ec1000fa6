"""Half a square whose learning rate passes 2/L: at 2 the loss stays where it is, at 2.5 each step makes it larger.

Run it from the repository's root: `python -m sample_runs.quadratic_divergence.record --out runs/again`. It captures the
row whose loss left, and feeds it again as this command does, which says that neither the batch nor the optimizer's
history is to blame, and that a tenth of the step would have lowered the loss:

    python -m recorder replay runs/again --row 101 --entry sample_runs.quadratic_divergence.record:build
"""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from recorder import CapturePolicy, FlightRecorder
from recorder.replay import replay
from sample_runs.options import output

STEADY, DIVERGING = 2.0, 2.5


def half_square(model: Any, _batch: Any) -> torch.Tensor:
    """x^2 / 2, whose curvature L is 1: gradient descent is stable below a learning rate of 2."""
    return model["x"].square().sum() / 2


def build() -> tuple[nn.Module, Any]:
    """The entry of the replay: the model and its loss."""
    return nn.ParameterDict({"x": nn.Parameter(torch.tensor([2.0]))}), half_square


def record(out: Path, steps: int = 112, raised_at: int = 100) -> None:
    """From x = 2, the learning rate raised where x is 2 again: four steps later x is 10.125."""
    model, loss_fn = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=STEADY)
    with FlightRecorder(out, model, optimizer, deep_every=0, capture=CapturePolicy(most=1)) as recorder:
        for step in range(steps):
            if step == raised_at:
                optimizer.param_groups[0]["lr"] = DIVERGING
            with recorder.transition(batch_id=step) as t:
                t.observe_batch(step)
                optimizer.zero_grad()
                loss = loss_fn(model, step)
                t.observe_loss(loss)
                t.record(x=model["x"])  # type: ignore[index]  # a dict of parameters
                loss.backward()
                t.measure_grad_norm()
                optimizer.step()


if __name__ == "__main__":
    here = output(__file__)
    record(here)
    replay(here, 101, "sample_runs.quadratic_divergence.record:build")
