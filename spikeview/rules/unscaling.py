"""The check for gradients that are clipped or measured while the loss scale is still in them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spikeview.cells import Kind, chosen
from spikeview.format import number, plural
from spikeview.rules.finding import Outcome
from spikeview.rules.limits import ends_at, is_pinned
from spikeview.rules.scale import no_scaler, scale_text
from spikeview.rules.steps import idle, segments
from spikeview.rules.verdict import Answer, passed, unknown, untold
from spikeview.rules.wording import name_rows
from spikeview.run import Run

AROUND = 8
FOLLOWS = 0.5
CERTAIN = 0.15
CHANGES = 3
MOST = 10_000


def clip_before_unscale(run: Run) -> Answer:
    """The loop clipped or measured gradients that were still multiplied by the loss scale.

    Where nobody recorded whether they were, as in a foreign log, a norm that follows the scale shows it.
    """
    if not run.recorded("loss_scale").any():
        return no_scaler(run)
    known = run.recorded("grad_norm_is_unscaled")
    if not known.any():
        return _by_the_norm(run)
    scaled = run.recorded("loss_scale") & (run.values("loss_scale") != 1)
    early = np.flatnonzero(known & ~run.values("grad_norm_is_unscaled") & scaled)
    at_step = np.flatnonzero(scaled & known & run.equals("grad_norm_source", "at_step"))
    if not len(early) and len(at_step):
        return _own_clipping(run, at_step)
    if not len(early):
        silent = scaled & (run.kind("grad_norm_is_unscaled") == Kind.NOT_RECORDED)
        return passed(run, "unscaled first", "grad_norm_is_unscaled", silent)
    scale = scale_text(run.values("loss_scale")[early[0]])
    return Answer(Outcome.FAILED, f"gradients still multiplied by {scale} at {name_rows(run, early)}", early)


def _own_clipping(run: Run, rows: NDArray[np.int64]) -> Answer:
    """Of norms that were first seen at the step: what a loop clips while scaled ends at its limit times the scale."""
    rows = rows[(run.kind("grad_norm")[rows] == Kind.FINITE) & (run.values("grad_norm")[rows] > 0)]
    scales = run.values("loss_scale")[rows]
    products = run.values("grad_norm")[rows] * scales
    pinned = ends_at(products)
    if len(np.unique(scales[pinned])) > 1 and is_pinned(int(np.count_nonzero(pinned)), len(rows)):
        text = (
            f"the norm times the loss scale ends at {number(float(products.max()))} at {name_rows(run, rows[pinned])}"
        )
        return Answer(Outcome.FAILED, f"{text}, whatever the scale: clipped while it was scaled", rows[pinned])
    text = "the norm was first seen at the step: what the loop clipped before, and whether unscaled, was not recorded"
    return untold(text, "grad_norm_source", "clip_coef")


def _by_the_norm(run: Run) -> Answer:
    """By how much the norm changes where the scale does: in logarithms, from the rows before to those after."""
    fit = (run.kind("grad_norm") == Kind.FINITE) & (run.values("grad_norm") > 0) & run.recorded("loss_scale")
    fit = fit & (run.values("loss_scale") > 0) & ~idle(run)
    scale, segment = chosen(run.values("loss_scale"), fit), chosen(segments(run), fit)
    changed = np.flatnonzero((scale[1:] != scale[:-1]) & (segment[1:] == segment[:-1])) + 1
    moves = np.log2(scale[changed]) - np.log2(scale[changed - 1])
    changed, moves = changed[moves != 0], moves[moves != 0]
    if len(changed) < CHANGES:
        text = f"the scale changes {plural(len(changed), 'time')} between rows with a norm: too few to see it follow"
        return untold(text, "grad_norm_is_unscaled") if len(scale) else unknown("grad_norm_is_unscaled")
    rows, norm = np.flatnonzero(fit), run.values("grad_norm")
    edges = np.concatenate([[0], changed, [len(rows)]])[: MOST + 2]
    changed, moves = changed[:MOST], moves[:MOST]
    heights = [np.median(np.log2(norm[rows[max(lo, hi - AROUND) : hi]])) for lo, hi in pairwise(edges)]
    begins = [np.median(np.log2(norm[rows[lo : min(hi, lo + AROUND)]])) for lo, hi in pairwise(edges)]
    answers = np.array(begins[1:]) - np.array(heights[:-1])
    slope = float(np.dot(moves, answers) / np.dot(moves, moves))
    rest = answers - slope * moves
    error = float(np.sqrt(np.dot(rest, rest) / max(len(moves) - 1, 1) / np.dot(moves, moves)))
    text = f"the norm changes by {number(slope)} octaves for each of the scale, over {plural(len(moves), 'change')}"
    if error > CERTAIN:
        return untold(f"{text}: too noisy to tell", "grad_norm_is_unscaled")
    return Answer(Outcome.FAILED if slope > FOLLOWS else Outcome.PASSED, text, rows[changed])
