"""Two runs beside each other: whether a change did more than remove what was not finite."""

from __future__ import annotations

from spikeview.rules.comparison.conclusion import SUCCESS, Answer, Conclusion, conclude
from spikeview.rules.comparison.pair import Comparison, compare

__all__ = ["SUCCESS", "Answer", "Comparison", "Conclusion", "compare", "conclude"]
