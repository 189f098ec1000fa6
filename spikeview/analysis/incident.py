"""An episode of a run: what was observed in it, how far it reaches, and what led it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recorder.schema import COLUMNS

KEPT = 256


@dataclass(frozen=True)
class Observation:
    """One signal at one position leaving its baseline or the finite numbers.

    `reason` is `nonfinite`, `outlier`, `drift`, `jump`, `skipped` or `not_moved`; `deviation` is in MADs: for `outlier`
    of the row from its baseline, for `drift` of the level from the best before, else None.
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
class SignalExtent:
    """How far one signal went in an episode: its first position, on how many rows it was out, and its worst value.

    The worst is one that is not finite, else the one farthest from its baseline.
    """

    first: int
    rows: int
    worst: Observation


@dataclass(frozen=True)
class Incident:
    """One episode. Positions index the rows of the optimizer it was seen on.

    `observations` are in causal order: by position, then forward before backward before update; of a long episode
    the first KEPT. `extent` holds of every signal, in the order in which they were first out, what all of its rows
    were. `persistence` is `transient`, `persistent` or `diverged`; `severity` is `warning` or `critical`.
    """

    observations: tuple[Observation, ...]
    last_healthy: int | None
    last: int
    severity: str
    persistence: str
    lead: tuple[Lead, ...]
    extent: Mapping[str, SignalExtent] = field(default_factory=dict)

    @property
    def first_bad(self) -> Observation:
        return self.observations[0]
