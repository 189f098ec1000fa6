"""Feeds a captured batch again, and lets what comes out decide between explanations."""

from __future__ import annotations

from recorder.replay.replay import is_judged, replay
from recorder.replay.setting import ReplayError

__all__ = ["ReplayError", "is_judged", "replay"]
