"""Skips by which a loss scaler finds its level, or keeps to it: no news."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.clocks import perhaps_executed, skips
from spikeview.analysis.overflows import far_out, widths
from spikeview.cells import Kind, chosen
from spikeview.run import Run

Positions = NDArray[np.int64]

# The largest scale in use, 2**24, is 1 after as many halvings: below that the gradients themselves are too large.
CALIBRATING = 24
# A scaler with hysteresis gives in at the second overflow: so many skips may come of one growth of the scale.
HYSTERESIS = 2
# A scale that so many steps executed under has found its level.
SETTLED = 24
# Under a scale that is far too large a few steps may execute: up to 6 on the even seeds of docs/diagnosis.md.
FIRST = 12


@dataclass(frozen=True)
class _Skips:
    """The skipped rows of a run, `rows` in order; everything else is [skips].

    `done` counts the steps that executed before each in its segment, `since` those after the skip before, `held` those
    under its scale since that grew, all of them where it never did; `left` says whether steps execute behind it in the
    segment, or nothing was attempted behind it yet; `opens` is the index of the first skip of its segment.
    """

    run: Run
    rows: Positions
    counts: Positions
    segment: Positions
    opens: Positions
    done: Positions
    since: Positions
    held: Positions
    left: Mask

    def so_far(self, each: Mask | Positions) -> Positions:
        """The sum over the segment up to each skip, itself included."""
        total = np.append(0, np.cumsum(each))
        sums: Positions = total[1:] - total[self.opens]
        return sums


def calibrating(run: Run) -> Mask:
    """[rows]: skips by which a scaler finds its level, or keeps to it.

    The first skips of a segment, before the first step that executes in it; one skip right after the scale grew; in a
    log's row of several steps, of which some executed, as many as one growth can cost. Then brief ones, by how many
    parameters overflowed (`_brief`): before the first scale has settled, and where the gradient overflowed without a
    NaN at a scale that has not settled since it grew, that is near one that was too large before, or that is the first
    one of all, unless gradients much larger than usual had passed it. Where nothing executes in the segment no level
    was found, and none of its skips is calibration.
    """
    return run.once("calibrating", lambda: _calibrating(run))


def _calibrating(run: Run) -> Mask:
    found, counts = np.zeros(len(run), dtype=np.bool_), skips(run)
    rows = np.flatnonzero(counts)  # few, and all else is asked of them alone
    if not len(rows):
        return found
    executed, starts = run.values("executed").astype(np.bool_), _starts(run)
    settles = np.logical_or.reduceat(executed | perhaps_executed(run), starts)
    grew = _growths(run)
    each = _skips(run, rows, counts[rows], np.flatnonzero(executed & (counts == 0)), starts, grew)
    halved = each.so_far(each.counts) <= CALIBRATING
    unsettled = each.so_far(each.since >= SETTLED) == 0
    grown = np.isin(rows, grew) | executed[rows] & (each.counts <= HYSTERESIS)
    few, many = widths(run, rows)
    infinite = run.kind("grad_norm")[rows] == Kind.POS_INF
    brief = _brief(each, few & infinite, many)
    calm = halved & ((each.done == 0) & settles[each.segment] | unsettled & brief) | grown
    overflowed = brief & infinite
    calm = calm | overflowed & (each.held < SETTLED)
    edge = overflowed & ~calm & _at_the_edge(each, calm, few)
    found[rows] = calm
    found[rows[edge]] = ~far_out(run, rows[edge], starts)
    return found


def _skips(
    run: Run, rows: Positions, counts: Positions, steps: Positions, starts: Positions, grew: Positions
) -> _Skips:
    """`steps` are the positions that executed whole, `starts` those of the segments, `grew` those of growths."""
    segment = np.searchsorted(starts, rows, side="right") - 1
    opens = np.searchsorted(rows, starts)[segment]
    before, bounds = np.searchsorted(steps, rows), np.searchsorted(steps, np.append(starts, len(run)))
    since = before - np.where(np.arange(len(rows)) == opens, bounds[segment], np.roll(before, 1))
    last = np.append(0, grew)[np.searchsorted(grew, rows, side="right")]
    held = before - np.where(last > starts[segment], np.searchsorted(steps, last), -len(run))
    tried = run.values("attempted").astype(np.bool_)
    tried[rows] = True
    left = (before < bounds[segment + 1]) | (rows == np.flatnonzero(tried)[-1])
    return _Skips(run, rows, counts, segment, opens, before - bounds[segment], since, held, left)


def _brief(each: _Skips, few: Mask, many: Mask) -> Mask:
    """[skips]: single ones or several in a row, with a step behind them in the segment, that a scaler may cause.

    What overflows a scale by little may by twice as much: so many as one growth can cost, of `few` parameters each. In
    the first steps of a segment the scale may be too large by far: any number, down to one of few. Later a single one
    that is not of `many`.
    """
    follows = (np.arange(len(each.rows)) != each.opens) & (each.since == 0)
    begins = np.flatnonzero(~follows)
    ends, early = np.append(begins[1:], len(follows)) - 1, each.done < FIRST
    length = ends + 1 - begins
    several = few[ends] & (early[begins] | (length <= HYSTERESIS) & np.logical_and.reduceat(few, begins))
    brief: Mask = each.left & ((length == 1) | several)[np.cumsum(~follows) - 1] & (early | ~many)
    return brief


def _at_the_edge(each: _Skips, calm: Mask, few: Mask) -> Mask:
    """[skips]: at half of a scale that was too large before in the segment, or at a higher one.

    And where no scale of the segment was: at its first one, or where `few` parameters overflowed. Nothing shows the
    level of such a scale: gradients a little larger than usual overflow.
    """
    scale = np.where(each.run.recorded("loss_scale"), each.run.values("loss_scale"), np.nan)[each.rows]
    too_large = np.split(np.where(calm, scale, np.inf), np.unique(each.opens)[1:])
    lowest = np.concatenate([np.fmin.accumulate(part) for part in too_large])
    untried = np.isinf(lowest) & ((each.held >= len(each.run)) | few) & ~np.isnan(scale)
    edge: Mask = (2 * scale >= lowest) | untried
    return edge


def _starts(run: Run) -> Positions:
    """The first row of each segment."""
    if "segment" not in run:
        return np.zeros(1, dtype=np.int64)
    return np.append(0, np.flatnonzero(np.diff(run.values("segment"))) + 1)


def _growths(run: Run) -> Positions:
    """The attempts whose scale is larger than that of the attempt before."""
    attempts = run.values("attempted") & run.recorded("loss_scale")
    scale = chosen(run.values("loss_scale"), attempts)
    rises = np.flatnonzero(scale[1:] > scale[:-1]) + 1
    return np.flatnonzero(attempts)[rises] if len(rises) else rises
