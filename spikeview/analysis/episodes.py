"""Observations grouped into episodes: where one begins, how far it reaches, and what led it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.incident import KEPT, Incident, Lead, Observation, SignalExtent
from spikeview.analysis.lazy import Column
from spikeview.analysis.observations import Observed
from spikeview.analysis.persistence import TRANSIENT, WINDOW, persistence
from spikeview.analysis.signals import PHASES, SIGNALS
from spikeview.run import Run

GAP = 5
HELD = 64
BEFORE = 8
# What an incident is depends on no row that is so far behind its last one.
SURE = HELD + GAP + WINDOW
LOOK = 4096


@dataclass(frozen=True)
class _Seen:
    """What was observed of one signal for one reason within one episode: `places` are its positions there."""

    observed: Observed
    places: NDArray[np.int64]

    @property
    def signal(self) -> str:
        return self.observed.signal

    @property
    def first(self) -> int:
        return int(self.places[0])

    def at(self, position: int) -> Observation:
        of = self.observed
        deviation = None if of.deviation is None else float(of.deviation[position])
        return Observation(position, of.signal, float(of.values[position]), of.reason, deviation)

    def worst(self) -> Observation:
        """The farthest out; where no distance is known, the first."""
        of = self.observed
        return self.at(self.first if of.deviation is None else self._farthest(of.deviation))

    def _farthest(self, deviation: Column) -> int:
        return int(self.places[np.argmax(np.abs(deviation[self.places]))])


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
        _incident(
            [_Seen(each, spots[begin[i] : end[i]]) for each, spots, begin, end in cuts if begin[i] < end[i]],
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


def _incident(seen: Sequence[_Seen], rows: NDArray[np.int64], last_healthy: int | None, last: int) -> Incident:
    kind = _persistence(seen, last)
    extent = _extent(seen)
    return Incident(
        observations=tuple(_observations(seen)),
        extent=extent,
        last_healthy=last_healthy,
        last=last,
        severity="warning" if kind == TRANSIENT or _may_be_meant(seen) else "critical",
        persistence=kind,
        lead=_lead(extent, rows),
    )


def _may_be_meant(seen: Sequence[_Seen]) -> bool:
    """Nothing but parameters that lost their gradient: layers that are frozen on purpose look the same."""
    return all(each.signal == "grad_none_params" for each in seen)


def _observations(seen: Sequence[_Seen]) -> Iterator[Observation]:
    """In causal order: `seen` is in that order within a row, and sorting keeps it."""
    places = [(position, each) for each in seen for position in each.places[:KEPT].tolist()]
    places.sort(key=lambda one: one[0])
    return (each.at(position) for position, each in places[:KEPT])


def _extent(seen: Sequence[_Seen]) -> Mapping[str, SignalExtent]:
    by_signal: dict[str, list[_Seen]] = {}
    for each in sorted(seen, key=lambda one: one.first):
        by_signal.setdefault(each.signal, []).append(each)
    return {signal: _signal_extent(own) for signal, own in by_signal.items()}


def _signal_extent(own: Sequence[_Seen]) -> SignalExtent:
    rows = len(own[0].places) if len(own) == 1 else len(np.unique(np.concatenate([each.places for each in own])))
    worst = next((each for each in own if each.observed.deviation is None), own[0])
    return SignalExtent(own[0].first, rows, worst.worst())


def _persistence(seen: Sequence[_Seen], last: int) -> str:
    """By the loss where it left its baseline, else by what did first."""
    leading = min(seen, key=lambda each: (each.observed.phase != "forward", each.first))
    own = [each for each in seen if each.signal == leading.signal]
    return persistence([each.observed for each in own], min(each.first for each in own), last)


def _lead(extent: Mapping[str, SignalExtent], rows: NDArray[np.int64]) -> tuple[Lead, ...]:
    """Signals that left before the loss, farthest ahead first; none where the loss did not leave."""
    if "loss" not in extent:
        return ()
    onset = extent["loss"].first
    ahead = sorted((each.first, signal) for signal, each in extent.items() if each.first < onset)
    return tuple(Lead(signal, int(rows[place]), int(rows[onset] - rows[place])) for place, signal in ahead)
