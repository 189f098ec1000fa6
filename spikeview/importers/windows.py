"""Counts of skipped steps, of rows that stand for several: which of them is not told, but how many are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any


def clocks(attempts: Sequence[int], skips: Sequence[int]) -> dict[str, list[Any]]:
    """The clocks of rows with so many attempts, of which so many were skipped.

    A row executed where any of its steps did. What each row skipped is the difference of the two counters.
    """
    executed = [some > none for some, none in zip(attempts, skips, strict=True)]
    ran = (some - none for some, none in zip(attempts, skips, strict=True))
    return {
        "attempted": [True] * len(executed),
        "executed": executed,
        "attempted_n": list(accumulate(attempts)),
        "executed_n": list(accumulate(ran)),
        "skip_reason": [None if any_step else "amp_overflow" for any_step in executed],
    }
