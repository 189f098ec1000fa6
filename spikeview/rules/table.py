"""RULES: the triage table. Each line is one pure function of an incident's context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

from spikeview.rules import attempts, backward, forward, update
from spikeview.rules.context import Context, Judgement
from spikeview.rules.finding import Finding
from spikeview.rules.relevance import by_relevance
from spikeview.rules.wording import rows_of


@dataclass(frozen=True)
class Rule:
    """One line of the table: its id, its wording, the first place to look, and the function that judges it."""

    id: str
    observation: str
    look: str
    judge: Callable[[Context], Judgement]


# fmt: off
RULES: tuple[Rule, ...] = (
    Rule("loss_nonfinite", "Loss non-finite",
         "inputs and forward activations; arithmetic that overflows forward: log(0), x/0, sqrt of a negative",
         forward.loss_nonfinite),
    Rule("grad_nonfinite_loss_finite", "Loss finite, gradients non-finite",
         "a boundary derivative (sqrt at 0, acos at 1); AMP overflow; custom backward",
         backward.grad_nonfinite_loss_finite),
    Rule("large_norm_tiny_coef", "Large pre-clip norm, tiny clip coefficient",
         "the parameter group that contributed the norm; an anomalous batch",
         backward.large_norm_tiny_coef),
    Rule("ordinary_grad_abnormal_update", "Ordinary gradient, abnormal update ratio or cosine",
         "optimizer state, a learning-rate change, a checkpoint resume",
         update.ordinary_grad_abnormal_update),
    Rule("no_attempt", "No optimizer attempt in this micro-step",
         "accumulation boundary, or intentional gating",
         attempts.no_attempt),
    Rule("attempted_not_executed", "Attempted, never executed",
         "AMP skipping on non-finite gradients",
         attempts.attempted_not_executed),
    Rule("executed_not_moved", "Executed, nothing moved",
         "grad is None, zero learning rate, an update that rounded away",
         update.executed_not_moved),
    Rule("loss_spike_clean_transition", "Loss spike, no abnormal transition",
         "a data outlier, a distribution boundary, a logging misalignment",
         forward.loss_spike_clean_transition),
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
    said = rule.judge(context)
    rows = rows_of(context.run, said.positions)
    return Finding(rule.id, rule.observation, said.verdict, said.evidence, rule.look, rows, said.missing)
