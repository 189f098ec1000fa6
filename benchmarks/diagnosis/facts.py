"""What the recorded rows plainly say after an onset: to tell a true consequence of a fault from a wrong verdict.

These are no diagnosis: they ask whether a statement about rows is so, never when something began or why.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spikeview.run import Run

BEFORE = 17
FEW_MADS = 4.0
COLLAPSED = 2.0**8

Floats = NDArray[np.float64]


def consequences(run: Run, onset: int, last: int) -> frozenset[str]:
    """The rules whose plain statement holds on some row from the onset to the last of its incident."""
    facts = {
        "loss_nonfinite": _nonfinite(run, "loss"),
        "grad_nonfinite_loss_finite": _broken(run) & ~_nonfinite(run, "loss"),
        "attempted_not_executed": run.values("attempted").astype(bool) & ~run.values("executed").astype(bool),
        "no_attempt": ~run.values("attempted").astype(bool) & ~run.equals("skip_reason", "accumulating"),
        "executed_not_moved": run.recorded("moved") & ~run.values("moved").astype(bool),
        "large_norm_tiny_coef": _far(run.values("grad_norm"), onset),
        "ordinary_grad_abnormal_update": _abnormal_update(run, onset),
    }
    return frozenset(name for name, rows in facts.items() if rows[onset : last + 1].any())


def counts(run: Run, onset: int) -> frozenset[str]:
    """The checks that hold by a plain count over the rows from the onset on."""
    skipped = run.values("attempted").astype(bool) & ~run.values("executed").astype(bool)
    declined = run.equals("skip_reason", "nonfinite_loss") | run.equals("skip_reason", "nonfinite_grad")
    scale, cut, share, buffers = (
        run.values(name)[onset:][run.recorded(name)[onset:]]
        for name in ("loss_scale", "clip_coef", "top_group_share", "nonfinite_buffers")
    )
    holds = {
        "nonfinite_buffers": (buffers > 0).any(),
        "skip_rate": np.mean(skipped | declined) > 0.05,
        "scale_collapse": len(scale) > 0 and scale.min() <= scale[0] / COLLAPSED,
        "always_clipping": len(cut) > 0 and max(np.mean(cut < 1), np.mean(cut[len(cut) // 2 :] < 1)) > 0.95,
        "group_dominates_norm": len(share) > 0 and np.mean(share > 0.9) > 0.5,
    }
    return frozenset(name for name, held in holds.items() if held)


def _nonfinite(run: Run, column: str) -> Any:
    return run.recorded(column) & ~np.isfinite(run.values(column))


def _broken(run: Run) -> Any:
    return run.recorded("grad_nonfinite_params") & (run.values("grad_nonfinite_params") > 0)


def _far(values: Floats, onset: int, side: int = 1) -> Any:
    """Rows that are FEW_MADS past the median of the BEFORE rows up to the onset; in logs if upwards."""
    with np.errstate(all="ignore"):
        scaled = np.log(values) if side > 0 else values
    usual = scaled[max(0, onset - BEFORE) : onset]
    usual = usual[np.isfinite(usual)]
    if not len(usual):
        return np.ones(len(values), dtype=bool)
    middle = np.median(usual)
    spread = max(1.4826 * float(np.median(np.abs(usual - middle))), 0.05)
    return np.isfinite(scaled) & (side * (scaled - middle) > FEW_MADS * spread)


def _abnormal_update(run: Run, onset: int) -> Any:
    """Rows with an ordinary norm and an update that is not: in size, in size for its rate, in direction, in rate."""
    ratio, rate = run.values("update_ratio"), run.values("lr")
    with np.errstate(all="ignore"):
        for_its_rate = ratio / rate
    odd = _far(ratio, onset) | _far(for_its_rate, onset) | _far(rate, onset) | _nonfinite(run, "update_ratio")
    odd |= _far(run.values("update_cosine"), onset, side=-1)
    return odd & run.values("executed").astype(bool) & ~_far(run.values("grad_norm"), onset) & ~_broken(run)
