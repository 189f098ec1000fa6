"""CHECKS: what is asked of the whole run. Each is one pure function of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spikeview.rules import amp, log, schedule
from spikeview.rules.finding import CheckResult, Outcome
from spikeview.rules.verdict import Answer
from spikeview.rules.wording import rows_of
from spikeview.run import Run


@dataclass(frozen=True)
class Check:
    """One check: its id, what holds where it passes, and the function that judges it.

    It judges the rows of each optimizer, or all of them at once where `whole`.
    """

    id: str
    title: str
    judge: Callable[[Run], Answer]
    whole: bool = False


# fmt: off
CHECKS: tuple[Check, ...] = (
    Check("schedule_drift", "Scheduler keeps to executed steps", schedule.schedule_drift),
    Check("skip_rate", "Few attempts are skipped", amp.skip_rate),
    Check("scale_never_updates", "Loss scale answers non-finite gradients", amp.scale_never_updates),
    Check("clip_before_unscale", "Norm measured and clipped after unscaling", amp.clip_before_unscale),
    Check("norm_logged_after_clip", "Norm logged before clipping", log.norm_logged_after_clip),
    Check("masked_nan_loss", "No NaN hidden behind a loss of 0", log.masked_nan_loss),
    Check("nonfinite_buffers", "Buffers of the model stay finite", log.nonfinite_buffers),
    Check("duplicate_steps", "Every step recorded once", log.duplicate_steps),
    Check("gap_in_log", "No gap in the log", log.gap_in_log, whole=True),
)
# fmt: on


def checked(run: Run, optimizers: Sequence[tuple[str, Run]]) -> tuple[CheckResult, ...]:
    """The answer of every check, in the order of CHECKS; of several optimizers, each with its rows, the worst one."""
    return tuple(_result(check, [(run.name, run)] if check.whole else optimizers) for check in CHECKS)


def _result(check: Check, runs: Sequence[tuple[str, Run]]) -> CheckResult:
    answers = [(name, run, check.judge(run)) for name, run in runs]
    name, run, answer = min(answers, key=lambda each: list(Outcome).index(each[2].outcome))
    evidence = f"{name}: {answer.evidence}" if len(runs) > 1 else answer.evidence
    return CheckResult(check.id, check.title, answer.outcome, evidence, rows_of(run, answer.positions))
