"""Observations grouped into episodes: where one begins, and how far it reaches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.incident import Incident
from spikeview.analysis.observed import Observed
from spikeview.analysis.occurrences import Occurrence, incident_of
from spikeview.analysis.persistence import WINDOW
from spikeview.analysis.signals import PHASES, SIGNALS
from spikeview.run import Run

GAP = 5
HELD = 64
BEFORE = 8
# What an incident is depends on no row that is so far behind its last one.
SURE = HELD + GAP + WINDOW
LOOK = 4096


def incidents(run: Run, observed: Sequence[Observed], since: int = 0) -> tuple[Incident, ...]:
    """The episodes of a run that begin `since` a row, in order.

    Observations at most GAP rows apart belong to the same one. Rows on which a signal that left is still held
    out do not count, up to HELD of them: what it shows there in between is no news.
    """
    ordered = sorted(observed, key=lambda each: PHASES.index(each.phase))
    recent = slice(since, None)
    bad = _bad(ordered, recent, len(run))
    places = np.flatnonzero(bad)
    if not len(places):
        return ()
    back = np.cumsum(~np.logical_or.reduce([bad, *(each.held[recent] for each in ordered if each.held is not None)]))
    breaks = np.flatnonzero((np.diff(back[places]) >= GAP) | (np.diff(places) > HELD))
    places += since
    firsts, lasts = places[np.append(0, breaks + 1)], places[np.append(breaks, len(places) - 1)]
    # cut and worked out once for all episodes: a run can hold tens of thousands of them
    cuts = []
    for each in ordered:
        spots, begins, ends = _cuts(each, firsts, lasts, since)
        own = begins < ends
        cuts.append((_worked_out(each, firsts[own], lasts[own]), spots, begins, ends))
    healthy = since + np.flatnonzero(_healthy(run, recent) & ~bad)
    rows = run.values("row") if "row" in run else np.arange(len(run))
    return tuple(
        incident_of(
            [Occurrence(each, spots[begin[i] : end[i]]) for each, spots, begin, end in cuts if begin[i] < end[i]],
            rows,
            int(healthy[before - 1]) if before else _last_healthy(run, ordered, since),
            int(lasts[i]),
        )
        for i, before in enumerate(np.searchsorted(healthy, firsts).tolist())
    )


def kept(
    known: Sequence[Incident], before: Sequence[Observed], now: Sequence[Observed], row: int
) -> tuple[Sequence[Incident], int]:
    """The known incidents that are as they were where only the rows from one on are new, and from where others begin.

    `before` is what they were made of, `now` what is observed by now.
    """
    row = min([row, *(_changed(one, other) for one, other in _paired(before, now))])
    count = sum(each.last + SURE < row for each in known)
    return known[:count], min([row, *(each.first_bad.position for each in known[count : count + 1])])


def _paired(before: Sequence[Observed], now: Sequence[Observed]) -> Iterator[tuple[Observed, Observed]]:
    """What was observed of the same signal for the same reason; what is there only once beside what is empty."""
    named = [{(each.signal, each.reason): each for each in side} for side in (before, now)]
    for name in dict.fromkeys([*named[0], *named[1]]):
        there = next(side[name] for side in named if name in side)
        none = replace(there, mask=np.zeros(len(there.mask), dtype=np.bool_), held=None)
        yield named[0].get(name, none), named[1].get(name, none)


def _changed(one: Observed, other: Observed) -> int:
    """The first row at which two of them differ; the length of the shorter where they do not."""
    rows = min(len(one.mask), len(other.mask))
    pairs = [(one.mask, other.mask)]
    if one.held is not None and other.held is not None:
        pairs.append((one.held, other.held))
    if one.reason == "drift" and one.deviation is not None and other.deviation is not None:
        pairs.append((np.isnan(one.deviation[:rows]), np.isnan(other.deviation[:rows])))
    return min(_first_difference(first[:rows], second[:rows]) for first, second in pairs)


def _first_difference(one: Mask, other: Mask) -> int:
    return len(one) if np.array_equal(one, other) else int(np.argmax(one != other))


def _bad(observed: Sequence[Observed], rows: slice, length: int) -> Mask:
    none = np.zeros(len(range(*rows.indices(length))), dtype=np.bool_)
    bad: Mask = np.logical_or.reduce([none, *(each.mask[rows] for each in observed)])
    return bad


def _worked_out(each: Observed, firsts: NDArray[np.int64], lasts: NDArray[np.int64]) -> Observed:
    """With its deviation on the rows of the episodes, and on those that tell of them; 0 elsewhere."""
    if each.deviation is None or not len(firsts):
        return each
    since = max(int(firsts[0]) - BEFORE, 0)
    edges = np.zeros(len(each.mask) + 1 - since, dtype=np.int8)
    np.add.at(edges, np.maximum(firsts - BEFORE, 0) - since, 1)
    np.add.at(edges, np.minimum(lasts + 1 + WINDOW, len(each.mask)) - since, -1)
    rows = since + np.flatnonzero(np.cumsum(edges, dtype=np.int32)[:-1])
    deviation = np.zeros(len(each.mask))  # takes no memory where nothing is put
    deviation[rows] = each.deviation[rows]
    return replace(each, deviation=deviation)


def _cuts(
    each: Observed, firsts: NDArray[np.int64], lasts: NDArray[np.int64], since: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where the observed rows are, and which of them each episode holds."""
    spots = since + np.flatnonzero(each.mask[since:])
    return spots, np.searchsorted(spots, firsts), np.searchsorted(spots, lasts, side="right")


def _healthy(run: Run, rows: slice) -> Mask:
    """Of these rows those that are not known to have been skipped, and of which something watched was recorded."""
    told = np.logical_or.reduce([run.recorded(signal.column)[rows] for signal in SIGNALS])
    executed = run.values("executed")[rows].astype(np.bool_) | ~run.recorded("executed")[rows]
    healthy: Mask = told & executed
    return healthy


def _last_healthy(run: Run, observed: Sequence[Observed], row: int) -> int | None:
    """The last healthy row before one, None where there is none."""
    end = row
    while end > 0:
        rows = slice(max(end - LOOK, 0), end)
        found = np.flatnonzero(_healthy(run, rows) & ~_bad(observed, rows, len(run)))
        if len(found):
            return rows.start + int(found[-1])
        end = rows.start
    return None
