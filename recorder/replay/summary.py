"""A replay's result in one line."""

from __future__ import annotations

from collections.abc import Sequence

from recorder.replay.comparison import BLAMED, DOES_NOT_TELL, REFUTES, SUPPORTS, Comparison


def summary(baseline: Comparison, comparisons: Sequence[Comparison]) -> str:
    """Whether the recorded loss came out again, and what that supports, refutes, or does not tell."""
    if baseline.verdict == REFUTES:
        return f"the recorded loss did not come out again ({baseline.outcome}), so nothing else is judged"
    said = (
        "the recorded loss came out again" if baseline.verdict == SUPPORTS else "no loss was recorded to compare with"
    )
    told = [said]
    for verdict in (SUPPORTS, REFUTES, DOES_NOT_TELL):
        blamed = [BLAMED[each.id] for each in comparisons if each.verdict == verdict and each.id in BLAMED]
        if blamed:
            told.append(f"{verdict}{' of' if verdict == DOES_NOT_TELL else ''}: {', '.join(blamed)}")
    return "; ".join(told)
