"""Checks on the loss scale: whether it falls for good, swings, or never answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.gradients import nonfinite_gradient, unknown_gradient
from spikeview.cells import chosen
from spikeview.format import plural, scalar
from spikeview.rules.finding import Outcome
from spikeview.rules.steps import idle, segments
from spikeview.rules.verdict import Answer, passed, unknown
from spikeview.rules.wording import name_rows
from spikeview.run import Floats, Run

COLLAPSE = 10
SWING = 2
SWINGS = 2
PACE = 4.0
SMALLEST = 2.0**-200
SCALES = "scales"


@dataclass(frozen=True)
class Scales:
    """The scale at each attempt that ran under one: `rows` are positions, `octaves` its base-2 logarithm.

    `follows` says at which of them the attempt before belongs to the same segment; `changes` index those whose scale
    is another than there, and `steps` are by how much it is.
    """

    run: Run
    rows: NDArray[np.int64]
    octaves: Floats
    follows: Mask
    changes: NDArray[np.int64]
    steps: Floats

    def at(self, index: int) -> str:
        """`16384 at row 12`."""
        row = name_rows(self.run, self.rows[[index]])
        return f"{scale_text(self.run.values('loss_scale')[self.rows[index]])} at {row}"


def scale_collapse(run: Run) -> Answer:
    """The scale fell a thousandfold in one go after steps had executed, or under 1, where it helps nothing."""
    scales = _scales(run)
    if scales is None:
        return no_scaler(run)
    octaves = scales.octaves
    low = np.flatnonzero(octaves < 0)
    if len(low):
        low = low[np.maximum.accumulate(octaves)[low] - octaves[low] >= COLLAPSE]
    starts, ends = _adjacent(scales.changes[scales.steps < 0])
    begun = scales.follows[np.maximum(starts - 1, 0)] & (starts > 0)  # a segment may begin by finding its level
    deep = begun & (octaves[starts - 1] - octaves[ends - 1] >= COLLAPSE)
    if len(low) or deep.any():
        top = int(np.argmax(octaves[: low[0]])) if len(low) else int(starts[deep][0] - 1)
        bottom = int(low[np.argmin(octaves[low])]) if len(low) else int(ends[deep][0] - 1)
        fallen = low if len(low) else np.arange(starts[deep][0], ends[deep][0])
        text = f"the loss scale fell from {scales.at(top)} to {scales.at(bottom)}"
        return Answer(Outcome.FAILED, text, scales.rows[fallen])
    lowest = scale_text(float(run.values("loss_scale")[scales.rows].min()))
    return Answer(Outcome.PASSED, f"lowest loss scale {lowest}")


def scale_oscillation(run: Run) -> Answer:
    """The scale falls by two halvings or more and climbs back, again and again, at nearly the pace its growth allows.

    A scaler at its level grows once and falls once per growth interval: that is no swing. An outlier now and then makes
    one too, but a rare one.
    """
    scales = _scales(run)
    if scales is None:
        return no_scaler(run)
    changes, steps = scales.changes, scales.steps
    grown, fallen = int(np.count_nonzero(steps > 0)), int(np.count_nonzero(steps < 0))
    counts = f"the scale grew {plural(grown, 'time')} and fell {plural(fallen, 'time')}"
    if grown:
        first, last = _falls(steps, changes)
        before, after = scales.octaves[first - 1], scales.octaves[last]
        climbed = before[1:] - after[:-1]
        swings = np.flatnonzero(climbed >= SWING)
        waited = np.diff(np.concatenate([[0], changes]))[steps > 0]
        quickest = np.median(waited) * climbed[swings].mean() if len(swings) else 0.0
        if len(swings) >= SWINGS and first[-1] - first[0] <= PACE * quickest * len(swings):
            falls = scales.rows[first - 1]
            high, low = (scale_text(2.0 ** round(float(np.median(level)))) for level in (before, after))
            text = f"{counts}: {len(first):,} times from about {high} to about {low}, after {name_rows(run, falls)}"
            return Answer(Outcome.FAILED, text, falls)
    return Answer(Outcome.PASSED, counts)


def scale_never_updates(run: Run) -> Answer:
    """The scale never fell after a non-finite gradient: `update()` is never reached on them."""
    scales = _scales(run)
    if scales is None:
        return no_scaler(run)
    rows, values = scales.rows, run.values("loss_scale")
    broken = nonfinite_gradient(run)[rows]
    judged = np.flatnonzero(broken[:-1] & scales.follows[1:])
    if not len(judged):
        silent = run.recorded("loss_scale") & ~idle(run) & unknown_gradient(run)
        return passed(run, "no non-finite gradient to answer", "grad_nonfinite_params", silent)
    answered = int(np.count_nonzero(values[rows[judged + 1]] < values[rows[judged]]))
    if answered:
        return Answer(Outcome.PASSED, f"the scale fell after {answered:,} of {len(judged):,} non-finite gradients")
    first, bad = scale_text(values[rows[judged[0]]]), rows[broken]
    return Answer(
        Outcome.FAILED, f"scale {first} did not fall after the non-finite gradients at {name_rows(run, bad)}", bad
    )


def no_scaler(run: Run) -> Answer:
    """The answer where no row has a loss scale."""
    told = "loss_scale" in run and not run.equals("skip_reason", "amp_overflow").any()
    return Answer(Outcome.NOT_APPLICABLE, "no loss scale") if told else unknown("loss_scale")


def scale_text(value: float) -> str:
    """`65536`."""
    return scalar("loss_scale", float(value))


def _scales(run: Run) -> Scales | None:
    """None where no attempt ran under a scale."""
    return run.once(SCALES, lambda: _scales_of(run))


def _scales_of(run: Run) -> Scales | None:
    scaled = run.recorded("loss_scale") & ~idle(run)
    rows = np.flatnonzero(scaled)
    if not len(rows):
        return None
    scale, segment = chosen(run.values("loss_scale"), scaled), chosen(segments(run), scaled)
    begins = np.append(0, np.flatnonzero(scale[1:] != scale[:-1]) + 1)  # a scale stays for long, as a rule
    octaves = np.repeat(np.log2(np.maximum(scale[begins], SMALLEST)), np.diff(np.append(begins, len(rows))))
    follows = np.append(False, segment[1:] == segment[:-1])
    changes = begins[follows[begins]]
    steps = octaves[changes] - octaves[changes - 1]
    return Scales(run, rows, octaves, follows, changes[steps != 0], steps[steps != 0])


def _stretches(mask: Mask) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First index of each stretch of True, and the index after its last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return edges[::2], edges[1::2]


def _adjacent(places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First place of each stretch of places one after the other, and the place after its last."""
    breaks = np.diff(places) > 1
    return places[np.append(True, breaks)[: len(places)]], places[np.append(breaks, True)[: len(places)]] + 1


def _falls(steps: Floats, changes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last index of each fall of SWING or more halvings with no growth in between."""
    begins, ends = _stretches(steps < 0)
    total = np.concatenate([[0.0], np.cumsum(steps)])
    large = total[begins] - total[ends] >= SWING
    return changes[begins[large]], changes[ends[large] - 1]
