"""MEASURES: what is measured of each of two runs, one small function each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spikeview.analysis.clocks import skipped_or_declined
from spikeview.analysis.gradients import nonfinite_gradient
from spikeview.analysis.signals import nonfinite
from spikeview.rules.comparison.trace import Trace, by_batch, length
from spikeview.run import Floats

Measure = Callable[[Trace], float | None]


def _of(column: str, statistic: Callable[[Floats], Any]) -> Measure:
    def measure(trace: Trace) -> float | None:
        values = trace.values(column)
        return float(statistic(values)) if len(values) else None

    return measure


def _fall(trace: Trace) -> float | None:
    first, last = trace.loss(trace.window), trace.loss(trace.horizon)
    return None if first is None or last is None else first - last


def _lost_rows(trace: Trace) -> float | None:
    run = trace.run
    if not run.recorded("loss").any():
        return None
    return float(np.count_nonzero(nonfinite(run, "loss") | nonfinite_gradient(run)))


def _cut(trace: Trace) -> float | None:
    factors = trace.values("clip_coef")
    return float(np.mean(factors < 1)) if len(factors) else None


def _coefficient(trace: Trace) -> float | None:
    factors = trace.values("clip_coef")
    cut = factors[factors < 1]
    return float(np.median(cut)) if len(cut) else None


def _skips(trace: Trace) -> float | None:
    run = trace.run
    return float(np.count_nonzero(skipped_or_declined(run))) if run.recorded("executed").any() else None


def _per_second(trace: Trace) -> float | None:
    """By the median time from one step to the next: pauses and resumes do not count."""
    times = trace.run.values("time_ns")[trace.compared[trace.run.recorded("time_ns")[trace.compared]]]
    apart = np.diff(times.astype(np.float64))
    apart = apart[apart > 0]
    return float(1e9 / np.median(apart)) if len(apart) else None


def _validation(trace: Trace) -> float | None:
    losses = [each.get("loss") for each in trace.run.events if each.get("kind") == "validation"]
    numbers = [float(loss) for loss in losses if isinstance(loss, (int, float))]
    return numbers[-1] if numbers else None


def _incidents(trace: Trace) -> float:
    return float(len(trace.diagnosis.incidents))


def _critical(trace: Trace) -> float:
    return float(sum(each.incident.severity == "critical" for each in trace.diagnosis.incidents))


def _recovery(trace: Trace) -> float | None:
    """Median rows from the onset of an incident in loss or gradient to its last one."""
    lengths = [length(each) for each in trace.diagnosis.incidents if by_batch(each)]
    return float(np.median(lengths)) if lengths else None


# fmt: off
MEASURES: tuple[tuple[str, str, str, Measure], ...] = (
    ("loss_first", "loss at the start", "", lambda trace: trace.loss(trace.window)),
    ("loss_last", "loss at the end", "", lambda trace: trace.loss(trace.horizon)),
    ("loss_fall", "fall of the loss", "", _fall),
    ("validation_last", "last validation loss", "", _validation),
    ("norm_median", "pre-clip norm, median", "", _of("grad_norm", np.median)),
    ("norm_p99", "pre-clip norm, 99th percentile", "", _of("grad_norm", lambda values: np.percentile(values, 99))),
    ("norm_max", "pre-clip norm, largest", "", _of("grad_norm", np.max)),
    ("clip_share", "share of steps clipped", "", _cut),
    ("clip_median", "clip coefficient where clipped, median", "", _coefficient),
    ("update_median", "update ratio, median", "", _of("update_ratio", np.median)),
    ("update_path", "way of the parameters", "", _of("update_norm", np.sum)),
    ("lr_median", "learning rate, median", "", _of("lr", np.median)),
    ("skipped_rows", "steps skipped or declined", "rows", _skips),
    ("nonfinite_rows", "loss or gradient not finite", "rows", _lost_rows),
    ("incidents", "incidents", "", _incidents),
    ("critical", "critical incidents", "", _critical),
    ("recovery_rows", "rows to recover, median", "rows", _recovery),
    ("steps_per_second", "steps per second", "1/s", _per_second),
    ("memory_max", "memory, largest", "B", _of("memory_bytes", np.max)),
)
# fmt: on
