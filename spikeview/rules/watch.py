"""What the rules of the triage table need to know of all rows, found once for all incidents of an optimizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.baseline import Baseline
from spikeview.analysis.clocks import perhaps_executed, skipped
from spikeview.analysis.gradients import nonfinite_gradient, overflowed_norm, unknown_gradient
from spikeview.analysis.jumps import lost_gradients
from spikeview.analysis.lazy import LazyMask, last_of
from spikeview.analysis.observed import Observed
from spikeview.analysis.rates import Rates, rates
from spikeview.analysis.signals import SIGNALS, Signal, lost_loss, masked_loss, still_scaled
from spikeview.cells import Kind
from spikeview.run import Run

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Watch:
    """Masks are [rows], positions in order.

    `out` says where a signal left its baseline, if only by habit, or the finite numbers; `doubtful` where it is not
    known whether it is ordinary, or is too far out to be and yet not taken for out. `broken` says where a gradient is
    not finite, `unsure` where that is not known, `overflowed` where only its norm is not; `scaled` where the norm may
    still be multiplied by the loss scale, `at_step` where it was seen only when the optimizer stepped, and may be what
    clipping left. `executed` says which are known to have executed, `perhaps` are the positions that may have. `lost`
    says where the loss is NaN or infinite, `masked` where a log has 0 in its place. `cut_off` says where parameters
    that had gradients have none any more, `drifting` where the loss rises slowly.
    """

    run: Run
    baselines: Mapping[str, Baseline]
    out: Mapping[str, LazyMask]
    doubtful: Mapping[str, LazyMask]
    broken: Mask
    unsure: Mask
    overflowed: Mask
    scaled: Mask
    at_step: Mask
    skips: Mask
    executed: Mask
    perhaps: Positions
    rates: Rates
    lost: Mask
    masked: Mask
    cut_off: Mask
    drifting: Mask

    def executed_before(self, position: int) -> int | None:
        """The last transition that executed before a position; None where there is none, or none is known to be it."""
        return None if len(self.perhaps_before(position)) else self._known_before(position)

    def perhaps_before(self, position: int) -> Positions:
        """The rows before a position that may be the last that executed, as nobody recorded whether they did."""
        known = self._known_before(position)
        first = 0 if known is None else int(np.searchsorted(self.perhaps, known))
        return self.perhaps[first : int(np.searchsorted(self.perhaps, position))]

    def _known_before(self, position: int) -> int | None:
        last = last_of(self.executed, position, 1)
        return int(last[0]) if len(last) else None


def watch(run: Run, baselines: Mapping[str, Baseline], observed: Sequence[Observed]) -> Watch:
    """What the rules need to know of all rows."""
    out = {signal.column: _out(signal, baselines.get(signal.column), observed) for signal in SIGNALS}
    at_step = run.equals("grad_norm_source", "at_step")
    seen_late = {"grad_norm": at_step}
    doubtful = {
        signal.column: _doubtful(
            run, signal, baselines.get(signal.column), out[signal.column], seen_late.get(signal.column)
        )
        for signal in SIGNALS
    }
    return Watch(
        run,
        baselines,
        out,
        doubtful,
        nonfinite_gradient(run),
        unknown_gradient(run),
        overflowed_norm(run),
        still_scaled(run),
        at_step,
        skipped(run),
        run.values("executed"),
        np.flatnonzero(perhaps_executed(run)),
        rates(run),
        lost_loss(run),
        masked_loss(run),
        lost_gradients(run),
        np.logical_or.reduce(
            [np.zeros(len(run), np.bool_), *(each.mask for each in observed if each.reason == "drift")]
        ),
    )


def _out(signal: Signal, baseline: Baseline | None, observed: Sequence[Observed]) -> LazyMask:
    masks = [each.mask for each in observed if each.signal == signal.column and each.reason != "drift"]
    masks += [] if baseline is None else [baseline.habitual]
    none = np.zeros(len(observed[0].mask), dtype=np.bool_)
    return LazyMask(lambda rows: np.logical_or.reduce([each[rows] for each in (none, *masks)]))


def _doubtful(run: Run, signal: Signal, baseline: Baseline | None, out: LazyMask, seen_late: Mask | None) -> LazyMask:
    """A value that was not recorded, was `seen_late`, that no baseline judges, or that is past its threshold."""
    kinds = run.kind(signal.column)

    def work_out(rows: Any) -> Any:
        doubtful = kinds[rows] == Kind.NOT_RECORDED
        if baseline is not None:
            doubtful |= (kinds[rows] == Kind.FINITE) & (~baseline.judged[rows] | baseline.far[rows])
        if seen_late is not None:
            doubtful |= seen_late[rows]
        return doubtful & ~out[rows]

    return LazyMask(work_out)
