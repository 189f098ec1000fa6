"""Occurrences: what was observed of each signal within one episode, and the incident that they amount to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spikeview.analysis.incident import KEPT, Incident, Lead, Observation, SignalExtent
from spikeview.analysis.lazy import Column
from spikeview.analysis.observed import Observed
from spikeview.analysis.persistence import TRANSIENT, persistence


@dataclass(frozen=True)
class Occurrence:
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


def incident_of(seen: Sequence[Occurrence], rows: NDArray[np.int64], last_healthy: int | None, last: int) -> Incident:
    """What one episode amounts to, which ends with the position `last`; `rows` has the number of the row at each."""
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


def _may_be_meant(seen: Sequence[Occurrence]) -> bool:
    """Nothing but parameters that lost their gradient: layers that are frozen on purpose look the same."""
    return all(each.signal == "grad_none_params" for each in seen)


def _observations(seen: Sequence[Occurrence]) -> Iterator[Observation]:
    """In causal order: `seen` is in that order within a row, and sorting keeps it."""
    places = [(position, each) for each in seen for position in each.places[:KEPT].tolist()]
    places.sort(key=lambda one: one[0])
    return (each.at(position) for position, each in places[:KEPT])


def _extent(seen: Sequence[Occurrence]) -> Mapping[str, SignalExtent]:
    by_signal: dict[str, list[Occurrence]] = {}
    for each in sorted(seen, key=lambda one: one.first):
        by_signal.setdefault(each.signal, []).append(each)
    return {signal: _signal_extent(own) for signal, own in by_signal.items()}


def _signal_extent(own: Sequence[Occurrence]) -> SignalExtent:
    rows = len(own[0].places) if len(own) == 1 else len(np.unique(np.concatenate([each.places for each in own])))
    worst = next((each for each in own if each.observed.deviation is None), own[0])
    return SignalExtent(own[0].first, rows, worst.worst())


def _persistence(seen: Sequence[Occurrence], last: int) -> str:
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
