"""Hugging Face's Trainer: records every micro-batch of `trainer.train()`.

    trainer = Trainer(..., callbacks=[SpikeviewCallback("runs/mlp")])

The loss is the raw one that `compute_loss` returns, before the Trainer divides, averages or filters it. The gradient is
measured before the Trainer clips it.
"""

from __future__ import annotations

try:
    from transformers import Trainer, TrainerCallback  # noqa: F401  # only to say what is missing
except ImportError as error:
    raise ImportError(
        "recorder.integrations.huggingface needs transformers: pip install 'spikeview[huggingface]'"
    ) from error

from recorder.integrations.huggingface.callback import SpikeviewCallback

__all__ = ["SpikeviewCallback"]
