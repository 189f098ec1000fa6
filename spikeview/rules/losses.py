"""Checks on the loss as it is recorded: divided otherwise than before, or a NaN behind a 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spikeview.analysis.gradients import nonfinite_gradient, unknown_gradient
from spikeview.analysis.signals import nonfinite
from spikeview.cells import Kind
from spikeview.format import label, number
from spikeview.rules.finding import Outcome
from spikeview.rules.steps import segments
from spikeview.rules.verdict import Answer, passed, too_few, unknown
from spikeview.rules.wording import name_rows, row_of
from spikeview.run import Floats, Run

WINDOWS = (16, 32, 64, 128)
CHANGED = 1.3
HALF = 0.5
SLOW = 0.25
SURE = 4.0

Positions = NDArray[np.int64]


def masked_nan_loss(run: Run) -> Answer:
    """A loss of exactly 0 beside a non-finite gradient: a logger that writes NaN as 0."""
    if not run.recorded("loss").any():
        return unknown("loss")
    if not (run.recorded("grad_norm") | run.recorded("grad_nonfinite_params")).any():
        return unknown("grad_norm")
    bad = nonfinite_gradient(run) | nonfinite(run, "grad_norm")
    zero = run.recorded("loss") & (run.values("loss") == 0)
    masked = np.flatnonzero(zero & bad)
    if len(masked):
        text = f"loss exactly 0 with a non-finite gradient or norm at {name_rows(run, masked)}"
        return Answer(Outcome.FAILED, text, masked)
    evidence = "no loss of 0 beside a non-finite gradient"
    lost = bad & ~run.recorded("loss")
    return passed(run, evidence, *(("loss", lost) if lost.any() else ("grad_norm", zero & unknown_gradient(run))))


def loss_denominator_changed(run: Run) -> Answer:
    """From one row on the loss lies higher or lower and its sum does not: only the count it is divided by changed.

    Where longer batches hold more targets, sum and count move together and the loss does not.
    """
    columns = ("loss", "loss_sum", "loss_count")
    if absent := [name for name in columns if not run.recorded(name).any()]:
        return unknown(*absent)
    told = np.logical_and.reduce([run.kind(name) == Kind.FINITE for name in columns])
    loss, total, count = (np.abs(run.values(name).astype(np.float64)) for name in columns)
    rows = np.flatnonzero(told & (loss > 0) & (total > 0) & (count > 0))
    if len(rows) < 2 * WINDOWS[0]:
        return too_few(len(rows), "rows with a loss and its count", 2 * WINDOWS[0])
    moved, unclear = _moved(np.log(loss[rows]), np.log(count[rows]), segments(run)[rows])
    if moved is not None:
        return Answer(Outcome.FAILED, _divided(run, rows, moved), rows[moved : moved + 1])
    jumped = _jumped(np.log(total[rows] / count[rows] / loss[rows]))
    if jumped is not None:
        return Answer(Outcome.FAILED, _undivided(run, rows, jumped), rows[jumped : jumped + 1])
    if unclear is not None:
        text = f"{_divided(run, rows, unclear)}: the loss varies too much to tell whether it moved with the count"
        return Answer(Outcome.CANNOT_TELL, text, rows[unclear : unclear + 1])
    kept = "kept to one value" if np.ptp(count[rows]) == 0 else "changed, and the sum with it"
    return passed(run, f"the loss count {kept}", "loss_count", run.recorded("loss") & ~told & run.recorded("loss_sum"))


def _moved(loss: Floats, count: Floats, segment: Positions) -> tuple[int | None, int | None]:
    """Where the loss moves against a step of its count, and where that cannot be told; arguments are in logarithms.

    A step is the difference of two means over a window. Where sum and count moved together the loss would stand still;
    the step before must not show that it was on its way already. The more often the count changes, the more of a step
    there is by chance beside one of its changes.
    """
    sigma, spread = _noise(loss), _noise(count)
    looks = len(WINDOWS) * (1 + np.count_nonzero(np.abs(np.diff(count)) > np.log(CHANGED)))
    unclear, settled = None, False
    for window in (each for each in WINDOWS if 2 * each <= len(loss)):
        error, other = sigma * np.sqrt(2 / window), _step(count, window)
        whole = segment[2 * window - 1 :] == segment[: len(segment) - 2 * window + 1]
        counted = whole & (np.abs(other) >= max(np.log(CHANGED), SURE * spread * np.sqrt(2 / window)))
        if not counted.any():
            continue
        step = _step(loss, window)
        against = -step * np.sign(other) - HALF * np.abs(other)
        before = np.concatenate([np.full(window, np.nan), step])[: len(step)]  # unknown at the start
        sure = -step * np.sign(other) > (np.sqrt(2 * np.log(looks)) + 1) * error
        found = np.flatnonzero(counted & sure & (against > error) & ~(before * np.sign(step) > HALF * np.abs(step)))
        if len(found):
            return int(found[np.argmax(np.abs(other[found]))]) + window, None
        at = int(np.argmax(np.abs(other) * counted))
        unclear = at + window if unclear is None else unclear
        settled |= bool(against[at] <= -2 * error and np.abs(before[at]) <= SLOW * np.abs(other[at]))
    return None, None if settled else unclear


def _step(values: Floats, window: int) -> Floats:
    """At each place between two windows, by how much the mean of the one after lies over that of the one before."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    mean = (total[window:] - total[:-window]) / window
    step: Floats = mean[window:] - mean[:-window]
    return step


def _noise(values: Floats) -> float:
    """Standard deviation of a series from row to row, as of a normal variable with the same median step."""
    return float(np.median(np.abs(np.diff(values))) / 0.6745 / np.sqrt(2))


def _jumped(quotient: Floats) -> int | None:
    """Where sum / count / loss, which should be constant, leaves its first value; its logarithm is [rows]."""
    off = np.flatnonzero(np.abs(quotient - quotient[0]) > np.log(CHANGED))
    return int(off[0]) if len(off) else None


def _divided(run: Run, rows: Positions, place: int) -> str:
    before, after = rows[max(0, place - WINDOWS[0]) : place], rows[place : place + WINDOWS[0]]

    def change(name: str) -> str:
        old, new = (float(np.median(run.values(name)[part])) for part in (before, after))
        return f"{label(name)} {number(old)} to {number(new)}"

    return f"{change('loss_count')} at row {row_of(run, rows[place])}: {change('loss')}, but {change('loss_sum')}"


def _undivided(run: Run, rows: Positions, place: int) -> str:
    at = rows[place]
    mean = run.values("loss_sum")[at] / run.values("loss_count")[at]
    here = f"row {row_of(run, at)}"
    return f"loss sum by loss count is {number(mean)} at {here}, where the loss reads {number(run.values('loss')[at])}"
