"""Shares and rates with their confidence bounds, over the scores of many recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from benchmarks.diagnosis.case import DUE
from benchmarks.diagnosis.corpus import CASES
from benchmarks.diagnosis.score import Score

CONFIDENCE = 0.95
PER = 100_000


@dataclass(frozen=True)
class Share:
    """`hits` of `of`, with the Wilson bounds of the share."""

    hits: int
    of: int

    @property
    def bounds(self) -> tuple[float, float]:
        from scipy.stats import binomtest

        if not self.of:
            return 0.0, 1.0
        interval = binomtest(self.hits, self.of).proportion_ci(CONFIDENCE, "wilson")
        return float(interval.low), float(interval.high)

    def __str__(self) -> str:
        if not self.of:
            return "none"
        low, high = self.bounds
        return f"{100 * self.hits / self.of:.1f} % ({100 * low:.1f} to {100 * high:.1f}) of {self.of:,}"


@dataclass(frozen=True)
class Rate:
    """`events` on `rows`, per PER rows, with the exact Poisson bounds."""

    events: int
    rows: int

    @property
    def bounds(self) -> tuple[float, float]:
        from scipy.stats import chi2

        tail = (1 - CONFIDENCE) / 2
        low = chi2.ppf(tail, 2 * self.events) / 2 if self.events else 0.0
        return low * PER / self.rows, chi2.ppf(1 - tail, 2 * self.events + 2) / 2 * PER / self.rows

    def __str__(self) -> str:
        if not self.rows:
            return "no rows"
        low, high = self.bounds
        return f"{self.events * PER / self.rows:.2f} ({low:.2f} to {high:.2f}), {self.events:,} on {self.rows:,} rows"


def share(scores: Iterable[Score], holds: Callable[[Score], bool]) -> Share:
    """Of how many scores something holds."""
    answers = [holds(score) for score in scores]
    return Share(sum(answers), len(answers))


def due(scores: Iterable[Score]) -> list[Score]:
    """The faults of which an incident must tell, and by the row they began at."""
    return [score for score in scores if CASES[score.case].incident == DUE and not CASES[score.case].is_gradual]


def gradual(scores: Iterable[Score]) -> list[Score]:
    """The faults of which an incident must tell though no row shows where they began."""
    return [score for score in scores if CASES[score.case].is_gradual]


def names_rule(score: Score) -> bool:
    """Whether the true rule is among the matched ones of the incident."""
    return CASES[score.case].rule in score.matched


def names_signal(score: Score) -> bool:
    """Whether the first bad signal is one that the fault changed first."""
    return score.signal in CASES[score.case].signals


def wrong_rules(scores: Sequence[Score]) -> Share:
    """Of all rules that matched in the incidents of faults, those that should not have."""
    return Share(sum(len(score.wrong) for score in scores), sum(len(score.matched) for score in scores))


def rule_precision(scores: Sequence[Score], rule: str) -> Share:
    """Of the incidents in which a rule matched, those in which it is true; false incidents count too."""
    matched = [rule not in score.wrong for score in scores if rule in score.matched]
    false = sum(rule in each["matched"] for each in chain.from_iterable(score.false for score in scores))
    return Share(sum(matched), len(matched) + false)


def rule_recall(scores: Sequence[Score], rule: str) -> Share:
    """Of the faults whose rule it is, those in which it matched."""
    return share((score for score in due(scores) if CASES[score.case].rule == rule), names_rule)


def check_precision(scores: Sequence[Score], check: str) -> Share:
    """Of the runs in which a check failed, those in which it should."""
    return share((s for s in scores if check in s.failed), lambda score: check not in score.wrong_checks)


def check_recall(scores: Sequence[Score], check: str) -> Share:
    """Of the runs in which a check should fail, those in which it did."""
    return share((s for s in scores if check in CASES[s.case].checks), lambda score: check in score.failed)


def unknown(scores: Sequence[Score]) -> Share:
    """Of what cannot be told, that of which the diagnosis said so, and what was missing."""
    asked = sum(len(CASES[score.case].unknown) for score in scores)
    return Share(sum(len(score.told_unknown) for score in scores), asked)


def false_rate(scores: Sequence[Score]) -> Rate:
    """False incidents on rows that hold no fault."""
    held = [score for score in scores if score.healthy_rows]
    return Rate(sum(len(score.false) for score in held), sum(score.healthy_rows for score in held))
