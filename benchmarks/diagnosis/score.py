"""One recording's diagnosis beside its truth."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.case import DUE, NONE, Case, Recording
from benchmarks.diagnosis.facts import consequences, counts
from benchmarks.diagnosis.record import RUN, read
from spikeview.format import label
from spikeview.importers import open_run
from spikeview.importers.all_ranks import open_ranks
from spikeview.rules.across_ranks import diagnose_ranks
from spikeview.rules.diagnosis import diagnose
from spikeview.rules.triage import triage

# An incident that begins farther from the onset than this, before or behind it, is another one. The rows before the
# onset hold no fault.
BEFORE, BEHIND = 5, 30
GRADUALLY_BEFORE, GRADUALLY_BEHIND = 33, 250
MATCHED, FAILED, CANNOT_TELL = "matched", "failed", "cannot_tell"


@dataclass(frozen=True)
class Score:
    """What the diagnosis of one recording got right.

    `error` is the reported onset minus the true one, in rows, None where nothing near it was reported or nothing was
    due; `rank` the one it was reported on. `wrong` are matched rules that should not have, `unnamed` texts that the
    incident does not hold. `false` incidents are those on healthy rows, of which there are `healthy_rows`, and those of
    runs in which none is due. `lead` is by how many rows the first leading signal was ahead. `crash` is what the
    diagnosis ended with, if it did.
    """

    case: str
    recording: Recording
    error: int | None = None
    rank: int | None = None
    signal: str | None = None
    matched: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    wrong_checks: tuple[str, ...] = ()
    told_unknown: tuple[str, ...] = ()
    lead: int | None = None
    false: tuple[Mapping[str, Any], ...] = ()
    healthy_rows: int = 0
    unnamed: tuple[str, ...] = ()
    crash: str | None = None

    @property
    def parity(self) -> int:
        return self.recording.seed % 2

    @property
    def is_found(self) -> bool:
        """Whether an incident was reported near the onset."""
        return self.error is not None

    def within(self, rows: int) -> bool:
        """Whether the onset was named on its rank, at most so many rows off."""
        return self.error is not None and abs(self.error) <= rows and self.rank == self.recording.rank


def complaints(case: Case, score: Score) -> list[str]:
    """Everything that was expected and did not come, or came and was not expected."""
    if score.crash is not None:
        return [f"the diagnosis ended with {score.crash}"]
    said = _about_onset(case, score) if case.incident == DUE else []
    said += [f"{rule} matched wrongly" for rule in score.wrong]
    said += [f"{check} did not fail" for check in case.checks if check not in score.failed]
    said += [f"{check} failed wrongly" for check in score.wrong_checks]
    said += [f"{name} is not cannot_tell" for name in case.unknown if name not in score.told_unknown]
    said += [f"false incident at row {each['row']} in {each['signal']}" for each in score.false]
    return said


def _about_onset(case: Case, score: Score) -> list[str]:
    if score.error is None:
        return ["no incident"]
    said = [f"onset {score.error:+d}"] if score.error and not case.is_gradual else []
    if score.rank != score.recording.rank:
        said.append(f"on rank {score.rank}, not {score.recording.rank}")
    if score.error == 0 and score.signal not in case.signals:
        said.append(f"first seen in {score.signal}")
    if case.rule is not None and case.rule not in score.matched:
        said.append(f"{case.rule} not matched")
    return said + [f"does not name {text}" for text in score.unnamed]


def told(directory: Path) -> dict[str, Any]:
    """What `spikeview triage --json` says of a run, with `--rank all` where it has several."""
    several = len(list(directory.glob("steps/rank=*"))) > 1
    return triage(diagnose_ranks(open_ranks(directory)) if several else diagnose(open_run(directory)))


def score(case: Case, folder: Path) -> Score:
    """Diagnose the recording in a folder and compare. A diagnosis that ends with an error is a miss like others."""
    recording, run = read(folder), open_run(folder / RUN)
    try:
        said = told(folder / RUN)
    except Exception as error:  # noqa: BLE001  # whatever it is, the other runs are still to be scored
        return Score(case.name, recording, crash=f"{type(error).__name__}: {error}")
    onset = None if case.incident == NONE else recording.onset
    incidents: list[dict[str, Any]] = said["incidents"]
    main = None if onset is None else _nearest(incidents, onset, case.is_gradual)
    checks, others = (
        _checks(case, said["checks"], counts(run, 0) | counts(run, onset or 0)),
        _others(case, recording, incidents, main),
    )
    result = Score(case.name, recording, **checks, **others)
    findings = said["checks"] if main is None else [*said["checks"], *main["findings"]]
    result = replace(result, told_unknown=_unknown(case, findings))
    if main is None or onset is None:
        return result
    matched = tuple(each["id"] for each in main["findings"] if each["verdict"] == MATCHED)
    right = {case.rule, *case.perhaps} | consequences(run, onset, main["last_row"])
    return replace(
        result,
        error=main["first_bad"]["row"] - onset,
        rank=main["first_bad"]["rank"],
        signal=main["first_bad"]["signal"],
        matched=matched,
        wrong=tuple(rule for rule in matched if rule not in right),
        unnamed=tuple(text for text in case.names if text not in json.dumps(main)),
        lead=max((each["rows_ahead"] for each in main["lead"]), default=None),
    )


def _checks(case: Case, checks: Sequence[dict[str, Any]], so: frozenset[str]) -> dict[str, Any]:
    failed = tuple(check["id"] for check in checks if check["verdict"] == FAILED)
    right = {*case.checks, *case.perhaps} | so
    return {
        "failed": failed,
        "wrong_checks": tuple(check for check in failed if check not in right),
    }


def _others(
    case: Case, recording: Recording, incidents: Sequence[dict[str, Any]], main: dict[str, Any] | None
) -> dict[str, Any]:
    """The incidents that are not the one that was meant: before it they are false, after it they follow from it."""
    others, onset = [each for each in incidents if each is not main], recording.onset
    if case.incident == NONE or onset is None:
        false = others if case.incident == NONE else []
        return {"false": tuple(map(_false, false)), "healthy_rows": recording.rows * case.is_healthy}
    early = [each for each in others if each["first_bad"]["row"] < onset]
    return {"false": tuple(map(_false, early)), "healthy_rows": onset}


def _nearest(incidents: Sequence[dict[str, Any]], onset: int, gradual: bool) -> dict[str, Any] | None:
    """The incident that begins nearest to the onset, the earlier of two; None where none is near."""
    before, behind = (GRADUALLY_BEFORE, GRADUALLY_BEHIND) if gradual else (BEFORE, BEHIND)
    near = [each for each in incidents if -before <= each["first_bad"]["row"] - onset <= behind]
    return min(near, key=lambda each: abs(each["first_bad"]["row"] - onset), default=None)


def _unknown(case: Case, findings: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Those that rightly cannot be told, and that name a column which would; or that were told all the same."""
    named = []
    for name, columns in case.unknown.items():
        said = [each for each in findings if each["id"] == name and each["verdict"] == CANNOT_TELL]
        told = any(each["id"] == name and each["verdict"] in (FAILED, MATCHED) for each in findings)
        if any(_names(each, column) for each in said for column in columns) or (told and name in case.perhaps):
            named.append(name)
    return tuple(named)


def _names(finding: Mapping[str, Any], column: str) -> bool:
    return column in finding.get("missing", ()) or column in finding["evidence"] or label(column) in finding["evidence"]


def _false(incident: Mapping[str, Any]) -> dict[str, Any]:
    first = incident["first_bad"]
    matched = [each["id"] for each in incident["findings"] if each["verdict"] == MATCHED]
    return {"row": first["row"], "signal": first["signal"], "deviation": first["deviation"], "matched": matched}
