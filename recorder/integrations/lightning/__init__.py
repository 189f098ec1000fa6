"""Lightning: records every batch of `trainer.fit()`, under automatic and under manual optimization.

    trainer = Trainer(..., callbacks=[SpikeviewCallback("runs/mlp")])

The loss is the one that `training_step` returns, or that `manual_backward` is given: before Lightning divides it by
`accumulate_grad_batches` or scales it. The gradient is measured before Lightning clips it.
"""

from __future__ import annotations

from recorder.integrations.lightning.callback import SpikeviewCallback

__all__ = ["SpikeviewCallback"]
