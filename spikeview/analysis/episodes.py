"""Observations grouped into episodes: where one begins, how far it reaches, and what led it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.incident import KEPT, Incident, Lead, Observation, SignalExtent
from spikeview.analysis.observations import Observed
from spikeview.analysis.persistence import TRANSIENT, persistence
from spikeview.analysis.signals import PHASES, SIGNALS
from spikeview.run import Floats, Run

GAP = 5


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

    def _farthest(self, deviation: Floats) -> int:
        return int(self.places[np.argmax(np.abs(deviation[self.places]))])


def incidents(run: Run, observed: Sequence[Observed]) -> tuple[Incident, ...]:
    """The episodes of a run, in order. Observations at most GAP rows apart belong to the same one."""
    ordered = sorted((each for each in observed if each.mask.any()), key=lambda each: PHASES.index(each.phase))
    if not ordered:
        return ()
    bad = np.logical_or.reduce([each.mask for each in ordered])
    places = np.flatnonzero(bad)
    breaks = np.flatnonzero(np.diff(places) > GAP)
    firsts, lasts = places[np.append(0, breaks + 1)], places[np.append(breaks, len(places) - 1)]
    # cut once for all episodes: a run can hold tens of thousands of them
    cuts = [(each, _cuts(each, firsts, lasts)) for each in ordered]
    healthy = np.flatnonzero(_healthy(run) & ~bad)
    rows = run.values("row") if "row" in run else np.arange(len(run))
    return tuple(
        _incident(
            [_Seen(each, spots[begin[i] : end[i]]) for each, (spots, begin, end) in cuts if begin[i] < end[i]],
            rows,
            int(healthy[before - 1]) if before else None,
            int(lasts[i]),
        )
        for i, before in enumerate(np.searchsorted(healthy, firsts).tolist())
    )


def _cuts(
    each: Observed, firsts: NDArray[np.int64], lasts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where the observed rows are, and which of them each episode holds."""
    spots = np.flatnonzero(each.mask)
    return spots, np.searchsorted(spots, firsts), np.searchsorted(spots, lasts, side="right")


def _healthy(run: Run) -> Mask:
    """Rows that are not known to have been skipped, and of which something that is watched was recorded."""
    told = np.logical_or.reduce([run.recorded(signal.column) for signal in SIGNALS])
    healthy: Mask = told & (run.values("executed").astype(np.bool_) | ~run.recorded("executed"))
    return healthy


def _incident(seen: Sequence[_Seen], rows: NDArray[np.int64], last_healthy: int | None, last: int) -> Incident:
    kind = _persistence(seen, last)
    extent = _extent(seen)
    return Incident(
        observations=tuple(_observations(seen)),
        extent=extent,
        last_healthy=last_healthy,
        last=last,
        severity="warning" if kind == TRANSIENT else "critical",
        persistence=kind,
        lead=_lead(extent, rows),
    )


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
