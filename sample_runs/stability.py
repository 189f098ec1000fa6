"""One weight, one outlier: what fp16, bf16 and clipping each do with it.

The three runs `fp16_overflow`, `bf16_explosion` and `bf16_clipped` share this loop and differ in precision and
clipping alone.
"""

from pathlib import Path

import torch
from torch import nn

from recorder import FlightRecorder
from sample_runs.options import parser


def record(
    out: Path, dtype: torch.dtype, *, outlier: float = 100_000.0, lr: float = 0.02, max_norm: float | None = None
) -> None:
    """Twelve steps towards zero from a weight of 0.25; the input of step 6 is the outlier instead of 1."""
    torch.set_num_threads(1)
    torch.manual_seed(7)
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 0.25)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scaler = torch.amp.GradScaler("cpu", enabled=dtype is torch.float16)
    config = {"outlier": outlier, "lr": lr, "max_norm": max_norm}

    with FlightRecorder(
        out, model, optimizer, scaler=scaler, max_norm=max_norm, deep_every=1, config=config
    ) as recorder:
        for step in range(12):
            x = torch.full((1, 1), outlier if step == 6 else 1.0)
            with recorder.transition(batch_id=step) as t:
                optimizer.zero_grad(set_to_none=True)
                t.observe_inputs(x)
                with torch.autocast("cpu", dtype=dtype):
                    prediction = model(x)
                loss = nn.functional.mse_loss(prediction.float(), torch.zeros_like(x))
                t.observe_loss(loss)
                scaler.scale(loss).backward()
                t.clip_grad_norm_()
                scaler.step(optimizer)
                scaler.update()
                t.record(weight=model.weight)


def main(script: str, dtype: torch.dtype, max_norm: float | None) -> None:
    """Record with the options of the command line."""
    options = parser(script)
    options.add_argument("--outlier", type=float, default=100_000.0, help="the input of step 6")
    options.add_argument("--lr", type=float, default=0.02, help="learning rate of SGD")
    options.add_argument("--max-norm", type=float, default=max_norm, help="limit of the gradient norm")
    given = options.parse_args()
    record(given.out, dtype, outlier=given.outlier, lr=given.lr, max_norm=given.max_norm)
