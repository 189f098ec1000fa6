"""Observations grouped into episodes: where one begins, how far it reaches, and what led it."""

from __future__ import annotations

from dataclasses import dataclass


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


@dataclass(frozen=True)
class Lead:
    """A signal that left its baseline before the loss did."""

    signal: str
    row: int
    rows_ahead: int


@dataclass(frozen=True)
class Incident:
    """One episode. Positions index the rows of the optimizer it was seen on.

    `observations` are in causal order: by position, then forward before backward before update. `persistence` is
    `transient`, `persistent` or `diverged`; `severity` is `warning` or `critical`.
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
