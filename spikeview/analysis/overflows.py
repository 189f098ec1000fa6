"""How large a gradient was of which it is only known that it overflowed, multiplied by its loss scale."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.followed import follow
from spikeview.analysis.signals import SIGNALS, still_scaled
from spikeview.cells import Kind
from spikeview.run import Run

# So many rows back gradients are much like those of a row; of fewer than LEAST nothing is said.
PASSED, LEAST = 400, 24
# So many parameters are more than the largest of their gradients. They are many where they are this share of all.
WIDE, SHARE = 3, 1 / 3

[_NORM] = [signal for signal in SIGNALS if signal.column == "grad_norm"]

Positions = NDArray[np.int64]


def widths(run: Run, rows: Positions) -> tuple[Mask, Mask]:
    """[rows], [rows]: where few parameters of an optimizer overflowed, and where many did. Neither where it is untold.

    At the edge of a scale the largest gradient overflows, seldom two; a NaN of the backward is in most of them. Of a
    single parameter nothing is said.
    """
    hit, total = run.values("grad_nonfinite_params")[rows], _all(run)
    told = run.recorded("grad_nonfinite_params")[rows] & (total > 1)
    many: Mask = told & (hit > SHARE * total) & ((hit >= WIDE) | (hit >= total))
    few: Mask = told & (hit > 0) & ~many
    return few, many


def _all(run: Run) -> int:
    """How many parameters of the optimizer have a gradient, else how many the model has; 0 where that is untold."""
    gradients, model = (run.manifest.get(name) for name in ("gradient_dtypes", "model"))
    own = gradients.get(next(iter(run.optimizers), None)) if isinstance(gradients, Mapping) else None
    types = own or (model.get("dtypes") if isinstance(model, Mapping) else None)
    return sum(each for each in types.values() if isinstance(each, int)) if isinstance(types, Mapping) else 0


def far_out(run: Run, rows: Positions, starts: Positions) -> Mask:
    """[rows]: overflowed at a scale that gradients far out of the baseline had passed. `starts` are of the segments.

    The norm of an overflow is not known. But it is about as large, at least, as the largest of the last PASSED that
    passed, taken at its scale: where that would be out, it is. At the edge of a scale one parameter overflows, seldom
    two: where WIDE or more did, half of the distance is enough.
    """
    far, hit = np.zeros(len(rows), dtype=np.bool_), run.values("grad_nonfinite_params")
    if not len(rows):
        return far
    norm, scale = run.values("grad_norm"), run.values("loss_scale")
    known = (run.kind("grad_norm") == Kind.FINITE) & (norm > 0) & run.recorded("loss_scale") & ~still_scaled(run)
    passed = np.flatnonzero(run.values("executed") & known)
    for index, row in enumerate(rows.tolist()):
        begin = starts[np.searchsorted(starts, row, side="right") - 1]
        before = passed[np.searchsorted(passed, begin) : np.searchsorted(passed, row)][-PASSED:]
        if len(before) >= LEAST and run.recorded("loss_scale")[row]:
            norms = np.log(norm[before])
            least = np.append(norms, (norms + np.log(scale[before])).max() - np.log(scale[row]))
            track = follow(least, np.ones(len(least), dtype=np.bool_), _NORM.floor)
            far[index] = track.deviation[len(before)] > _NORM.threshold / (2 if hit[row] >= WIDE else 1)
    return far
