"""Observations grouped into episodes: where one begins, how far it reaches, and what led it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recorder.schema import COLUMNS
from spikeview.analysis.observations import Observed
from spikeview.analysis.persistence import TRANSIENT, WINDOW, persistence
from spikeview.analysis.signals import PHASES, SIGNALS
from spikeview.run import Run

GAP = 5
KEPT = 256

_SIDE = {signal.column: signal.side for signal in SIGNALS}


@dataclass(frozen=True)
class Observation:
    """One signal at one position leaving its baseline or the finite numbers.

    `reason` is `nonfinite`, `outlier`, `skipped` or `not_moved`; `deviation` is in MADs, None unless `outlier`.
    """

    position: int
    signal: str
    value: float
    reason: str
    deviation: float | None = None

    @property
    def phase(self) -> str:
        """The part of the transition that its signal belongs to, as in the schema: `forward`, `backward` and so on."""
        column = COLUMNS.get(self.signal)
        return column.phase if column else ""


@dataclass(frozen=True)
class Lead:
    """A signal that left its baseline before the loss did."""

    signal: str
    row: int
    rows_ahead: int


@dataclass(frozen=True)
class Incident:
    """One episode. Positions index the rows of the optimizer it was seen on.

    `observations` are in causal order: by position, then forward before backward before update; of a long episode
    the first KEPT. `persistence` is `transient`, `persistent` or `diverged`; `severity` is `warning` or `critical`.
    """

    observations: tuple[Observation, ...]
    last_healthy: int | None
    last: int
    severity: str
    persistence: str
    lead: tuple[Lead, ...]

    @property
    def first_bad(self) -> Observation:
        return self.observations[0]


def incidents(run: Run, observed: Sequence[Observed]) -> tuple[Incident, ...]:
    """The episodes of a run, in order. Observations at most GAP rows apart belong to the same one."""
    ordered = sorted((each for each in observed if each.mask.any()), key=lambda each: PHASES.index(each.phase))
    if not ordered:
        return ()
    bad = np.logical_or.reduce([each.mask for each in ordered])
    places = np.flatnonzero(bad)
    breaks = np.flatnonzero(np.diff(places) > GAP)
    firsts, lasts = places[np.append(0, breaks + 1)], places[np.append(breaks, len(places) - 1)]
    executed = np.flatnonzero((run.values("executed") | ~run.recorded("executed")) & ~bad)
    return tuple(_incident(run, ordered, executed, int(a), int(b)) for a, b in zip(firsts, lasts, strict=True))


def _incident(run: Run, observed: Sequence[Observed], healthy: NDArray[np.int64], first: int, last: int) -> Incident:
    within = [each for each in observed if each.mask[first : last + 1].any()]
    before = int(np.searchsorted(healthy, first))
    kind = _persistence(within, first, last)
    return Incident(
        observations=tuple(_observations(within, first, last)),
        last_healthy=int(healthy[before - 1]) if before else None,
        last=last,
        severity="warning" if kind == TRANSIENT else "critical",
        persistence=kind,
        lead=_lead(run, within, first, last),
    )


def _observations(observed: Sequence[Observed], first: int, last: int) -> Iterator[Observation]:
    count = 0
    masks = [each.mask[first : last + 1] for each in observed]
    for offset in np.flatnonzero(np.logical_or.reduce(masks)):
        position = first + int(offset)
        for each, mask in zip(observed, masks, strict=True):
            if mask[offset]:
                deviation = None if each.deviation is None else float(each.deviation[position])
                yield Observation(position, each.signal, float(each.values[position]), each.reason, deviation)
                count += 1
        if count >= KEPT:
            return


def _persistence(observed: Sequence[Observed], first: int, last: int) -> str:
    """By the loss where it left its baseline, else by what did first."""
    forward = [each for each in observed if each.phase == "forward"]
    signal = (forward or sorted(observed, key=lambda each: int(np.argmax(each.mask[first : last + 1]))))[0].signal
    own = [each for each in observed if each.signal == signal]
    length = len(own[0].mask)
    rows = slice(
        first + min(int(np.argmax(each.mask[first : last + 1])) for each in own), min(last + 1 + WINDOW, length)
    )
    lost = np.logical_or.reduce(
        [each.mask[rows] for each in own if each.reason != "outlier"] or [np.zeros(1, np.bool_)]
    )
    away = [each.deviation for each in own if each.deviation is not None]
    side = _SIDE.get(signal, 1)
    deviation = side * away[0][rows] if away else np.zeros(rows.stop - rows.start)
    return persistence(deviation, np.broadcast_to(lost, deviation.shape), to_the_end=rows.stop == length)


def _lead(run: Run, observed: Sequence[Observed], first: int, last: int) -> tuple[Lead, ...]:
    """Signals that left before the loss, farthest ahead first; none where the loss did not leave."""
    onset: dict[str, int] = {}
    for each in observed:
        place = first + int(np.argmax(each.mask[first : last + 1]))
        onset[each.signal] = min(place, onset.get(each.signal, place))
    if "loss" not in onset:
        return ()
    rows = run.values("row") if "row" in run else np.arange(len(run))
    ahead = sorted((place, signal) for signal, place in onset.items() if place < onset["loss"])
    return tuple(Lead(signal, int(rows[place]), int(rows[onset["loss"]] - rows[place])) for place, signal in ahead)
