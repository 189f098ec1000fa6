"""RULES: the triage table. Each line is one pure function of an incident's context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from spikeview.cancelling import checkpoint
from spikeview.rules import attempts, backward, forward, update
from spikeview.rules.context import Context, Judgement
from spikeview.rules.finding import Finding, Verdict
from spikeview.rules.playbook import next_step
from spikeview.rules.relevance import by_relevance
from spikeview.rules.replayed import with_replay
from spikeview.rules.wording import rows_of


@dataclass(frozen=True)
class Rule:
    """One line of the table: its id, its wording, the first place to look, and the function that judges it.

    `next` is a step whose result could prove the line wrong, with names in braces for what `next_step` fills in.
    """

    id: str
    observation: str
    look: str
    judge: Callable[[Context], Judgement]
    next: str


# fmt: off
RULES: tuple[Rule, ...] = (
    Rule("loss_nonfinite", "Loss non-finite",
         "inputs and forward activations; arithmetic that overflows forward: log(0), x/0, sqrt of a negative",
         forward.loss_nonfinite,
         "run {batch} in {wider} with the parameters of {before}: a finite loss there says "
         "that the range of {precision} is to blame, and neither the inputs nor the formula"),
    Rule("grad_nonfinite_loss_finite", "Loss finite, gradients non-finite",
         "a boundary derivative (sqrt at 0, acos at 1); AMP overflow; custom backward",
         backward.grad_nonfinite_loss_finite,
         "run the backward of {batch} in fp32 with a loss scale of 1 and the parameters of {before}: finite "
         "gradients there say that it was an overflow, and no boundary derivative"),
    Rule("large_norm_tiny_coef", "Large pre-clip norm, tiny clip coefficient",
         "the parameter group that contributed the norm; an anomalous batch",
         backward.large_norm_tiny_coef,
         "take the gradient norms of {batch} and of two ordinary batches with the parameters of {before}: if "
         "theirs are as large, the batch is not to blame; if {group} has no larger share than with theirs, "
         "neither is that group"),
    Rule("ordinary_grad_abnormal_update", "Ordinary gradient, abnormal update ratio or cosine",
         "optimizer state, a learning-rate change, a checkpoint resume",
         update.ordinary_grad_abnormal_update,
         "repeat the step of {accused} with an optimizer without history, at the learning rate of the rows "
         "before: an update as abnormal there clears both"),
    Rule("no_attempt", "No optimizer attempt in this micro-step",
         "accumulation boundary, or intentional gating",
         attempts.no_attempt,
         "compare {row} with the loop: if an attempt was due there, it is neither an accumulation boundary nor "
         "gating"),
    Rule("attempted_not_executed", "Attempted, never executed",
         "AMP skipping on non-finite gradients",
         attempts.attempted_not_executed,
         "run {batch} with a loss scale of 1 and the parameters of {before}: gradients that are not finite "
         "there either say that no scale would have saved the step"),
    Rule("executed_not_moved", "Executed, nothing moved",
         "grad is None, zero learning rate, an update that rounded away",
         update.executed_not_moved,
         "print gradients and learning rates of every group right before the step of {row}: if there are "
         "gradients and rates over 0, only the rounding of the parameters is left; fp32 copies of them would "
         "move"),
    Rule("loss_spike_clean_transition", "Loss spike, no abnormal transition",
         "a data outlier, a distribution boundary, a logging misalignment",
         forward.loss_spike_clean_transition,
         "evaluate {batch} and two ordinary batches with the parameters of {checkpoint}: if the losses are "
         "alike, the batch is not to blame"),
)
# fmt: on


class Findings(Sequence[Finding]):
    """Every line of the table for one incident, in order of relevance.

    They are worked out when they are first read: a run can hold tens of thousands of incidents, and a reader looks at
    few of them.
    """

    def __init__(self, context: Context) -> None:
        self._context = context

    @cached_property
    def _found(self) -> tuple[Finding, ...]:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # as in `diagnose`, long before this
            said = [_finding(rule, self._context) for rule in RULES]
        return by_relevance(said, self._context.incident.first_bad)

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Finding, ...]: ...
    def __getitem__(self, index: int | slice) -> Finding | tuple[Finding, ...]:
        return self._found[index]

    def __len__(self) -> int:
        return len(RULES)


def _finding(rule: Rule, context: Context) -> Finding:
    checkpoint()
    said, is_done = with_replay(rule.id, rule.judge(context), context)
    rows = rows_of(context.run, said.positions)
    step = "" if is_done or said.verdict is Verdict.RULED_OUT else next_step(rule.next, context)
    return Finding(rule.id, rule.observation, said.verdict, said.evidence, rule.look, rows, said.missing, step)
