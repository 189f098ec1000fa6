"""What was captured of a run's rows, and what came of feeding them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

SUPPORTS, REFUTES, DOES_NOT_TELL = "supports", "refutes", "does not tell"

BASELINE, GRADIENT = "baseline", "gradient"


@dataclass(frozen=True)
class Comparison:
    """What was supposed, what came out, and what that says: SUPPORTS, REFUTES or DOES_NOT_TELL."""

    id: str
    hypothesis: str
    outcome: str
    verdict: str


@dataclass(frozen=True)
class Evaluation:
    """One forward and backward: `first_parameter` is the first whose gradient was not finite."""

    loss: float
    grad_norm: float
    first_parameter: str | None = None


@dataclass(frozen=True)
class Replay:
    """The result of feeding a captured row again, and its `summary` in one line.

    The baseline stands first among the `comparisons`, by their ids. `own` is the row as it was recorded, `batches` are
    others at the same parameters. One that cannot be read is empty, and `problem` says why.
    """

    summary: str
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    own: Evaluation | None = None
    batches: tuple[Evaluation, ...] = ()
    problem: str | None = None

    def verdict(self, comparison: str) -> str:
        """Of one comparison; DOES_NOT_TELL where it was not made."""
        found = self.comparisons.get(comparison)
        return DOES_NOT_TELL if found is None else found.verdict

    @property
    def is_trusted(self) -> bool:
        """Whether what was recorded came out again: the loss, or the gradient where no loss was recorded."""
        baseline = self.verdict(BASELINE)
        return baseline == SUPPORTS or (baseline == DOES_NOT_TELL and self.verdict(GRADIENT) == SUPPORTS)


@dataclass(frozen=True)
class Capture:
    """A captured row, with its replay where there is one. `command` feeds it again; None where it is not here."""

    row: int
    command: str | None = None
    replay: Replay | None = None


def not_here(captures: Iterable[Capture]) -> tuple[Capture, ...]:
    """The captures of a run that is not a directory on this machine: nothing feeds them again."""
    return tuple(replace(each, command=None) for each in captures)
