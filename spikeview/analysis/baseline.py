"""Baseline: what a signal has been doing on recent executed, healthy rows."""

from __future__ import annotations

from dataclasses import dataclass

from spikeview.run import Floats


@dataclass(frozen=True)
class Baseline:
    """One signal's expected value at every row, made only from the healthy rows before it.

    All arrays are [rows]; `center`, `lower` and `upper` are in the signal's own units, where `lower` and
    `upper` stand one MAD below and above; `deviation` is the row's signed distance from the centre in MADs.
    NaN where there is no baseline yet, and in `deviation` where the row has no finite value.
    """

    center: Floats
    lower: Floats
    upper: Floats
    deviation: Floats
