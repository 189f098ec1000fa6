"""CHECKS: what is asked of the whole run. Each is one pure function of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spikeview.cancelling import checkpoint
from spikeview.rules import (
    alignment,
    clipping,
    data,
    gradient,
    groups,
    limits,
    log,
    losses,
    precision,
    ranks,
    resume,
    scale,
    schedule,
    skips,
    smoothing,
    unscaling,
)
from spikeview.rules.finding import CheckResult, Outcome
from spikeview.rules.seen import Seen
from spikeview.rules.verdict import Answer
from spikeview.rules.wording import rows_of
from spikeview.run import Run

CRITICAL = "critical"


def rows(judge: Callable[[Run], Answer]) -> Callable[[Seen], Answer]:
    """A check that needs nothing but rows."""
    return lambda seen: judge(seen.run)


@dataclass(frozen=True)
class Check:
    """One check: its id, what holds where it passes, the function that judges it, and what could prove it wrong.

    It judges the rows of each optimizer, or all of them at once where `whole`.
    """

    id: str
    title: str
    judge: Callable[[Seen], Answer]
    next: str
    severity: str = "warning"
    whole: bool = False


# fmt: off
CHECKS: tuple[Check, ...] = (
    Check("schedule_drift", "Scheduler keeps to executed steps", rows(schedule.schedule_drift),
          "step the scheduler only where t.executed: drift that remains comes from elsewhere"),
    Check("skip_rate", "Few attempts are skipped", rows(skips.skip_rate),
          "run the skipped batches in bf16 or fp32: if they are not finite there either, the range of fp16 is not to "
          "blame"),
    Check("scale_collapse", "Loss scale does not collapse", rows(scale.scale_collapse),
          "run a skipped batch with a loss scale of 1: finite gradients there would say that the scale is to blame, "
          "not the model"),
    Check("scale_oscillation", "Loss scale keeps its level", rows(scale.scale_oscillation),
          "compare the batches of the falls: if ordinary ones fall too, single batches are not to blame; then raise "
          "growth_interval tenfold, and swings that remain are not the scaler's"),
    Check("scale_never_updates", "Loss scale answers non-finite gradients", rows(scale.scale_never_updates),
          "read scaler.get_scale() before and after update() on such a row: a scale that fell there was only logged "
          "wrongly"),
    Check("clip_before_unscale", "Norm measured and clipped after unscaling", rows(unscaling.clip_before_unscale),
          "call scaler.unscale_(optimizer) before the clipping: a norm that stays as large was not scaled"),
    Check("clip_after_step", "Clipping comes before the step", rows(clipping.clip_after_step),
          "lower max_norm a hundredfold for a few rows: updates that shrink with it were clipped before the step"),
    Check("clip_per_microbatch", "One clipping per effective batch", rows(clipping.clip_per_microbatch),
          "clip only after the last micro-batch: an update that stays the same was not cut per micro-batch"),
    Check("norm_logged_after_clip", "Norm logged before clipping", rows(limits.norm_logged_after_clip),
          "double max_norm for a few rows: a largest norm that does not double with it is the gradient's own"),
    Check("always_clipping", "Not every gradient is clipped", rows(clipping.always_clipping),
          "train some hundred rows with a max_norm over the 95th percentile of the norm: if the loss falls no faster, "
          "the limit did not hold it back"),
    Check("group_dominates_norm", "No small group dominates the norm", rows(groups.group_dominates_norm),
          "clip that group by itself: if the updates of the others stay as they are, it did not hold them back"),
    Check("gradients_not_cleared", "Every row has a gradient of its own", rows(gradient.gradients_not_cleared),
          "call zero_grad() before backward on the first such row: a norm that is as large was not a sum"),
    Check("nan_after_unscale", "No non-finite gradient passes the scaler", rows(precision.nan_after_unscale),
          "look at the gradients right after scaler.unscale_(): if they are not finite there, nothing made them so "
          "later", CRITICAL),
    Check("loss_denominator_changed", "Loss is divided by what it was", rows(losses.loss_denominator_changed),
          "recompute the mean of one batch from its targets, with the parameters of one checkpoint: if it has moved "
          "too, the predictions did"),
    Check("loss_smoothed", "Loss is raw", rows(smoothing.loss_smoothed),
          "evaluate one row's batch with that row's parameters: if it gives the loss that was recorded, nothing was "
          "averaged"),
    Check("masked_nan_loss", "No NaN hidden behind a loss of 0", rows(losses.masked_nan_loss),
          "print the loss of such a row before it is logged: a 0 there is a true 0"),
    Check("nonfinite_buffers", "Buffers of the model stay finite", rows(log.nonfinite_buffers),
          "evaluate the last checkpoint in evaluation mode: finite outputs clear the buffers", CRITICAL),
    Check("resume_incomplete", "A resume brings everything back", resume.resume_incomplete,
          "resume from the same checkpoint with everything restored: what the first rows still show was not lost in "
          "the resume"),
    Check("repeated_batch", "No batch does harm twice", data.repeated_batch,
          "evaluate that batch and three ordinary ones with one checkpoint: if its loss and norm are like theirs, the "
          "batch is not to blame"),
    Check("input_scale_shift", "Inputs keep their scale", rows(data.input_scale_shift),
          "load the batch of that row again by hand: inputs of the usual size there were changed on the way"),
    Check("rank_outlier", "No rank stands apart", ranks.rank_outlier,
          "give that rank another rank's batches: if it stays apart, its data is not to blame", whole=True),
    Check("ranks_disagree", "All ranks take the same steps", ranks.ranks_disagree,
          "compare a parameter of the two sides after the row: equal ones were brought together again", CRITICAL,
          whole=True),
    Check("autocast_device_mismatch", "Autocast reaches the model", rows(precision.autocast_device_mismatch),
          "print torch.is_autocast_enabled(device) within the forward: if it is on there, the precision was only "
          "recorded wrongly"),
    Check("alignment_shift", "Updates keep their direction", rows(alignment.alignment_shift),
          "repeat the rows around the step with a fresh optimizer: a rate that changes there too is not the "
          "optimizer's"),
    Check("duplicate_steps", "Every step recorded once", rows(log.duplicate_steps),
          "compare the batches of the two rows: different ones are two steps that were numbered alike"),
    Check("gap_in_log", "No gap in the log", rows(log.gap_in_log),
          "look for the missing rows where the log was written: if they are there, only the reading lost them",
          whole=True),
)
# fmt: on


def checked(whole: Seen, optimizers: Sequence[tuple[str, Seen]]) -> tuple[CheckResult, ...]:
    """The answer of every check, in the order of CHECKS; of several optimizers, each with its rows, the worst one."""
    found = tuple(_result(check, [(whole.run.name, whole)] if check.whole else optimizers) for check in CHECKS)
    for _, each in optimizers:
        each.run.forget(scale.SCALES)  # as long as the run, and of no use to anybody else
    return found


def _result(check: Check, seen: Sequence[tuple[str, Seen]]) -> CheckResult:
    checkpoint()
    answers = [(name, each.run, check.judge(each)) for name, each in seen]
    name, run, answer = min(answers, key=lambda each: list(Outcome).index(each[2].outcome))
    evidence = f"{name}: {answer.evidence}" if len(seen) > 1 else answer.evidence
    rows, failed = rows_of(run, answer.positions), answer.outcome is Outcome.FAILED
    step = check.next if failed else ""
    return CheckResult(check.id, check.title, answer.outcome, evidence, rows, answer.missing, step, check.severity)
