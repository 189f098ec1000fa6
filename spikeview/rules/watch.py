"""What the rules of the triage table need to know of all rows, found once for all incidents of an optimizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.baseline import Baseline
from spikeview.analysis.clocks import perhaps_executed, skipped
from spikeview.analysis.observations import Observed, nonfinite_gradient, overflowed_norm, unknown_gradient
from spikeview.analysis.rates import Rates, rates
from spikeview.analysis.signals import SIGNALS, still_scaled
from spikeview.run import Kind, Run

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Watch:
    """Masks are [rows], positions in order.

    `out` says where a signal left its baseline, if only by habit, or the finite numbers; `doubtful` where it is not
    known whether it is ordinary. `broken` says where a gradient is not finite, `unsure` where that is not known,
    `overflowed` where only its norm is not; `scaled` where the norm may still be multiplied by the loss scale,
    `at_step` where it was seen only when the optimizer stepped, and may be what clipping left. `executed` are the
    positions that are known to have executed, `perhaps` those that may have.
    """

    run: Run
    baselines: Mapping[str, Baseline]
    out: Mapping[str, Mask]
    doubtful: Mapping[str, Mask]
    broken: Mask
    unsure: Mask
    overflowed: Mask
    scaled: Mask
    at_step: Mask
    skips: Mask
    executed: Positions
    perhaps: Positions
    rates: Rates

    def executed_before(self, position: int) -> int | None:
        """The last transition that executed before a position; None where there is none, or none is known to be it."""
        return None if len(self.perhaps_before(position)) else self._known_before(position)

    def perhaps_before(self, position: int) -> Positions:
        """The rows before a position that may be the last that executed, as nobody recorded whether they did."""
        known = self._known_before(position)
        first = 0 if known is None else int(np.searchsorted(self.perhaps, known))
        return self.perhaps[first : int(np.searchsorted(self.perhaps, position))]

    def _known_before(self, position: int) -> int | None:
        count = int(np.searchsorted(self.executed, position))
        return int(self.executed[count - 1]) if count else None


def watch(run: Run, baselines: Mapping[str, Baseline], observed: Sequence[Observed]) -> Watch:
    """What the rules need to know of all rows."""
    out = {signal.column: np.zeros(len(run), dtype=np.bool_) for signal in SIGNALS}
    out |= {column: baseline.habitual for column, baseline in baselines.items()}
    for each in observed:
        if each.signal in out:
            out[each.signal] = out[each.signal] | each.mask
    doubtful = {column: _unjudged(run, column, baselines.get(column)) & ~out[column] for column in out}
    at_step = run.equals("grad_norm_source", "at_step")
    doubtful["grad_norm"] = doubtful["grad_norm"] | at_step & ~out["grad_norm"]
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
        np.flatnonzero(run.values("executed")),
        np.flatnonzero(perhaps_executed(run)),
        rates(run),
    )


def _unjudged(run: Run, column: str, baseline: Baseline | None) -> Mask:
    """A value that was not recorded, or that no baseline judges."""
    kinds = run.kind(column)
    unjudged: Mask = kinds == Kind.NOT_RECORDED
    return unjudged if baseline is None else unjudged | ((kinds == Kind.FINITE) & np.isnan(baseline.deviation))
