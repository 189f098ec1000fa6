"""What a rule or a check says, and with what evidence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """A rule's answer, in the order in which a reader wants them. What was not recorded is never ruled out."""

    MATCHED = "matched"
    CANNOT_TELL = "cannot_tell"
    RULED_OUT = "ruled_out"


class Outcome(StrEnum):
    """A check's answer, in the order in which a reader wants them."""

    FAILED = "failed"
    CANNOT_TELL = "cannot_tell"
    PASSED = "passed"
    NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True)
class Finding:
    """One line of the triage table for one incident.

    `observation` is the line's own wording, `evidence` the numbers it saw, `look` the first place to look,
    `rows` the recorder's row numbers they came from, `missing` the columns that would have told.
    """

    id: str
    observation: str
    verdict: Verdict
    evidence: str
    look: str
    rows: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it, with the keys of `triage --json`."""
        return {**vars(self), "verdict": self.verdict.value, "rows": list(self.rows), "missing": list(self.missing)}


@dataclass(frozen=True)
class CheckResult:
    """One check on the whole run."""

    id: str
    title: str
    outcome: Outcome
    evidence: str
    rows: tuple[int, ...] = ()
