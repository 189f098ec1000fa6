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
    `rows` the recorder's row numbers they came from, `missing` the columns that would have told. `next` is a step that
    could prove the line wrong; there is none where it is ruled out already, or where a replay did it.
    """

    id: str
    observation: str
    verdict: Verdict
    evidence: str
    look: str
    rows: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()
    next: str = ""

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it, with the keys of `triage --json`."""
        return {**vars(self), "verdict": self.verdict.value, "rows": list(self.rows), "missing": list(self.missing)}


@dataclass(frozen=True)
class CheckResult:
    """One check on the whole run.

    `missing` are the columns that would have told, `next` a step that could prove a failed check wrong; `severity` is
    how much it weighs if it fails, as of an incident: `warning` or `critical`.
    """

    id: str
    title: str
    outcome: Outcome
    evidence: str
    rows: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()
    next: str = ""
    severity: str = "warning"

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it, with the keys of `triage --json`."""
        own = {name: value for name, value in vars(self).items() if name != "outcome"}
        return {**own, "verdict": self.outcome.value, "rows": list(self.rows), "missing": list(self.missing)}
