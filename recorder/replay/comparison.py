"""A comparison: a hypothesis, what would refute it, what came out, and what that says."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SUPPORTS, REFUTES, DOES_NOT_TELL = "supports", "refutes", "does not tell"

# What each hypothesis blames, for a line that names all of them.
BLAMED = {
    "numerical_range": "the range of the format",
    "arithmetic": "the arithmetic",
    "batch": "the batch",
    "state": "the parameters",
    "step_length": "the length of the step",
    "optimizer_history": "the optimizer's history",
    "optimizer_lost": "a lost history",
    "clipping": "the clipping",
}

# How much larger than another a value must be to count as another order, and how near to count as the same.
FAR, NEAR = 3.0, 1.25


@dataclass(frozen=True)
class Comparison:
    """`verdict` is one of `supports`, `refutes`, `does not tell`; no cause is declared from one comparison alone."""

    id: str
    hypothesis: str
    refuted_if: str
    outcome: str
    verdict: str

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)


def short(value: float) -> str:
    """A number as the outcomes write it."""
    return f"{value:.6g}"
