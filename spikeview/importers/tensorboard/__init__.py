"""TensorBoard event files, read as they are: every scalar, none sampled, without TensorFlow."""

from __future__ import annotations

from spikeview.importers.tensorboard.logdir import TENSORBOARD

__all__ = ["TENSORBOARD"]
