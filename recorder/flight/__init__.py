"""FlightRecorder: the only class a training loop sees."""

from __future__ import annotations

from recorder.flight.recorder import FlightRecorder

__all__ = ["FlightRecorder"]
