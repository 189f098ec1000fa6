"""One small function per measured quantity. None reads a value back to the host, save on the CPU."""

from __future__ import annotations

from recorder.probes.clipping import clip_finite_
from recorder.probes.gradients import (
    GradientNorms,
    Parameter,
    Vector,
    dense_gradients,
    gradient_norms,
    over_all_shares,
    total_norm,
    total_of,
    values_of,
)
from recorder.probes.magnitudes import absmax, largest_magnitude, loss_quantiles
from recorder.probes.ungraded import ungraded
from recorder.probes.vectors import dot, is_short, norm, short_dot, short_norm

__all__ = [
    "GradientNorms",
    "Parameter",
    "Vector",
    "absmax",
    "clip_finite_",
    "dense_gradients",
    "dot",
    "gradient_norms",
    "is_short",
    "largest_magnitude",
    "loss_quantiles",
    "norm",
    "over_all_shares",
    "short_dot",
    "short_norm",
    "total_norm",
    "total_of",
    "ungraded",
    "values_of",
]
