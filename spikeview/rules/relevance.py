"""In which order an incident's findings are told."""

from __future__ import annotations

from collections.abc import Sequence

from spikeview.analysis.incident import Observation
from spikeview.rules.finding import Finding, Verdict

# The rule that speaks of what was seen first, by its phase and why it was seen.
SPEAKS_OF: dict[tuple[str, str], str] = {
    ("forward", "nonfinite"): "loss_nonfinite",
    ("forward", "outlier"): "loss_spike_clean_transition",
    ("backward", "nonfinite"): "grad_nonfinite_loss_finite",
    ("backward", "outlier"): "large_norm_tiny_coef",
    ("clocks", "skipped"): "attempted_not_executed",
    ("clocks", "not_moved"): "executed_not_moved",
    ("optimizer", "nonfinite"): "ordinary_grad_abnormal_update",
    ("backward", "jump"): "executed_not_moved",
    ("optimizer", "jump"): "ordinary_grad_abnormal_update",
    ("optimizer", "outlier"): "ordinary_grad_abnormal_update",
}


def by_relevance(findings: Sequence[Finding], first_bad: Observation) -> tuple[Finding, ...]:
    """Matched first, then what cannot be told, then what is ruled out.

    Of the matched, the one that speaks of the first bad observation leads; then the earlier its rows the earlier a
    finding, since only what came before can explain. Otherwise they stay in the order of the table.
    """
    primary = SPEAKS_OF.get((first_bad.phase, first_bad.reason))

    def place(finding: Finding) -> tuple[int, bool, int]:
        matched = finding.verdict is Verdict.MATCHED
        return list(Verdict).index(finding.verdict), finding.id != primary, min(finding.rows, default=0) * matched

    return tuple(sorted(findings, key=place))
