"""Which rows are in sight: ranges of positions as two floats, a row standing at its whole number."""

from __future__ import annotations

import numpy as np

from spikeview.analysis.incident import Incident
from spikeview.ui.plot.scale import Steps

Range = tuple[float, float]
LEAST = 5.0
COMFORTABLE = 600.0


def whole(rows: int) -> Range:
    """All rows, with room for the first and the last to be seen."""
    margin = max(0.5, rows * 0.004)
    return -margin, rows - 1 + margin


def is_whole(first: float, last: float, rows: int) -> bool:
    """Whether all rows are in sight."""
    low, high = whole(rows)
    return last - first > 0.999 * (high - low)


def within(first: float, last: float, rows: int) -> Range:
    """The nearest allowed range: not narrower than a few rows, and not beyond the run."""
    low, high = whole(rows)
    extent = min(max(last - first, LEAST), high - low)
    first = (first + last - extent) / 2
    first = min(max(first, low), high - extent)
    return first, first + extent


def around(incident: Incident, rows: int) -> Range:
    """An incident with what came before it, wide enough to see what is ordinary."""
    first = incident.first_bad.position
    extent = max(COMFORTABLE, 5.0 * (incident.last - first))
    if rows <= 2 * COMFORTABLE:
        return whole(rows)
    return first - 0.55 * extent, first + 0.45 * extent


def containing(current: Range, position: int, rows: int) -> Range:
    """The range moved just as far as shows the position."""
    first, last = current
    margin = 0.05 * (last - first)
    shift = min(0.0, position - (first + margin)) + max(0.0, position - (last - margin))
    return within(first + shift, last + shift, rows)


def zoomed(current: Range, centre: float, factor: float) -> Range:
    """The range with its extent multiplied, the centre staying where it is."""
    first, last = current
    return centre - (centre - first) * factor, centre + (last - centre) * factor


def grown(current: Range, rows: int, now: int) -> Range:
    """The range of a run that has more rows now: with its end, where the end was in sight, else as it was."""
    first, last = current
    if is_whole(first, last, rows):
        return whole(now)
    more = float(now - rows) if last >= rows - 1 else 0.0
    return within(first + more, last + more, now)


def following(position: int, rows: int) -> int | None:
    """The next position, None after the last."""
    return position + 1 if position + 1 < rows else None


def nearest_step(steps: Steps, step: int) -> tuple[int, bool]:
    """The last position at the step nearest to one, and whether it is that step.

    After a resume a step may come twice.
    """
    values = steps.values
    if steps.rising:
        beyond = int(np.searchsorted(values, step, side="right"))
        after = int(np.searchsorted(values, values[min(beyond, len(values) - 1)], side="right")) - 1
        position = min((max(beyond - 1, 0), after), key=lambda each: (abs(int(values[each]) - step), -each))
    else:
        distance = np.abs(values - step)
        position = len(distance) - 1 - int(np.argmin(distance[::-1]))
    return position, bool(values[position] == step)
