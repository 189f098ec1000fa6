"""What a run shows of the ten common mistakes: each function answers one line of the checklist."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from spikeview.analysis.clocks import skipped_or_declined
from spikeview.analysis.gradients import nonfinite_gradient
from spikeview.analysis.signals import nonfinite
from spikeview.format import plural, shown
from spikeview.rules.diagnosis import Diagnosis
from spikeview.rules.finding import Outcome
from spikeview.rules.scale import no_scaler
from spikeview.rules.steps import segments
from spikeview.rules.verdict import Answer, unknown, untold
from spikeview.rules.wording import name_rows
from spikeview.run import Run

Judge = Callable[[Diagnosis], Answer]


def by_checks(*ids: str) -> Judge:
    """The worst answer of these checks."""

    def judge(diagnosis: Diagnosis) -> Answer:
        own = [check for check in diagnosis.checks if check.id in ids]
        worst = min(own, key=lambda check: list(Outcome).index(check.outcome))
        return Answer(worst.outcome, worst.evidence, missing=worst.missing)

    return judge


def forward_overflow(diagnosis: Diagnosis) -> Answer:
    """Skipped rows whose loss was not finite: there the forward overflowed, and the scale had no part in it."""
    run = diagnosis.run
    if not run.recorded("loss_scale").any():
        return no_scaler(run)
    skips = np.flatnonzero(skipped_or_declined(run))
    if not len(skips):
        return Answer(Outcome.PASSED, "no step was skipped")
    if not run.recorded("loss")[skips].all():
        return unknown("loss")
    lost = skips[nonfinite(run, "loss")[skips]]
    if len(lost):
        text = f"the loss of {len(lost):,} of {plural(len(skips), 'skipped row')} was not finite, at"
        return Answer(Outcome.FAILED, f"{text} {name_rows(run, lost)}: no loss scale prevents that")
    return Answer(Outcome.PASSED, f"every loss was finite, on {plural(len(skips), 'skipped row')}")


def restarts(diagnosis: Diagnosis) -> Answer:
    """Whether the run was restarted; why it was, nobody records."""
    count = _resumes(diagnosis.run)
    if count is None:
        return unknown("segment")
    if not count:
        return Answer(Outcome.PASSED, "no restart in this run")
    return untold(f"{plural(count, 'restart')}; why is not recorded")


def nonfinite_events(diagnosis: Diagnosis) -> Answer:
    """Whether there was anything not finite to look at; whether somebody looked, nobody records."""
    run = diagnosis.run
    if not (run.recorded("loss") & (run.recorded("grad_norm") | run.recorded("grad_nonfinite_params"))).any():
        return unknown("loss", "grad_norm")
    bad = np.flatnonzero(nonfinite(run, "loss") | nonfinite_gradient(run))
    if not len(bad):
        return Answer(Outcome.PASSED, f"every recorded loss and gradient is finite, on {plural(len(run), 'row')}")
    return untold(f"loss or gradient not finite on {plural(len(bad), 'row')}; whether anybody looked is not recorded")


def fp16_parameters(diagnosis: Diagnosis) -> Answer:
    """Whether parameters are stored in FP16."""
    types = parameter_types(diagnosis.run)
    if types is None:
        return untold("the types of the parameters were not recorded", "model")
    text = f"parameters in {listed(types)}"
    return Answer(Outcome.FAILED if "float16" in types else Outcome.PASSED, text)


def bf16_watched(diagnosis: Diagnosis) -> Answer:
    """Whether a run in BF16 records what BF16 does not protect: finite gradients and updates."""
    run, ran = diagnosis.run, precisions(diagnosis.run)
    if ran is None:
        return unknown("precision")
    if "bf16" not in ran:
        return Answer(Outcome.NOT_APPLICABLE, f"ran in {listed(ran)}")
    if absent := [name for name in ("grad_norm", "update_ratio") if not run.recorded(name).any()]:
        return unknown(*absent)
    norms, updates = (int(np.count_nonzero(run.recorded(name))) for name in ("grad_norm", "update_ratio"))
    return Answer(Outcome.PASSED, f"norms of {plural(norms, 'gradient')} and {plural(updates, 'update')} recorded")


def _resumes(run: Run) -> int | None:
    return len(np.unique(segments(run))) - 1 if "segment" in run and len(run) else None


def precisions(run: Run) -> list[str] | None:
    """The precisions that the forward ran in; None where none was recorded."""
    if not run.recorded("precision").any():
        return None
    return [str(text) for text in run.table["precision"].unique().to_pylist() if text is not None]


def parameter_types(run: Run) -> list[str] | None:
    """The types that parameters are stored in, as the manifest has them."""
    model = run.manifest.get("model")
    types = model.get("dtypes") if isinstance(model, Mapping) else None
    return [str(name) for name in types] if isinstance(types, Mapping) and types else None


def listed(names: list[str]) -> str:
    """Names of a run in a sentence."""
    return " and ".join(map(shown, names))
