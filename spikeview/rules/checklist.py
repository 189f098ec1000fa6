"""CHECKLIST: ten common mistakes and what to verify before a launch, each with what this run shows of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from spikeview.rules import launch, practice
from spikeview.rules.diagnosis import Diagnosis
from spikeview.rules.finding import Outcome
from spikeview.rules.practice import Judge, by_checks


class Section(StrEnum):
    """What a line is: a mistake that may have been made, or a thing that should hold."""

    MISTAKE = "mistake"
    LAUNCH = "launch"


WORDS: dict[Section, dict[Outcome, str]] = {
    Section.MISTAKE: {Outcome.FAILED: "present", Outcome.PASSED: "not present"},
    Section.LAUNCH: {Outcome.FAILED: "no", Outcome.PASSED: "yes"},
}
UNDECIDED = {Outcome.CANNOT_TELL: "cannot tell", Outcome.NOT_APPLICABLE: "not applicable"}


@dataclass(frozen=True)
class Line:
    """One line of the checklist and the function that answers it for a run."""

    id: str
    section: Section
    title: str
    judge: Judge


@dataclass(frozen=True)
class Item:
    """A line with its answer. `outcome` is `failed` where a mistake is present, or where what should hold does not."""

    id: str
    section: Section
    title: str
    outcome: Outcome
    evidence: str
    missing: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """The answer as a reader wants it: `present`, `yes`, `cannot tell`."""
        return {**UNDECIDED, **WORDS[self.section]}[self.outcome]

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "id": self.id,
            "section": self.section.value,
            "title": self.title,
            "verdict": self.outcome.value,
            "answer": self.word,
            "evidence": self.evidence,
            "missing": list(self.missing),
        }


M, L = Section.MISTAKE, Section.LAUNCH

# fmt: off
CHECKLIST: tuple[Line, ...] = (
    Line("clipping_scaled_gradients", M, "Clipping scaled FP16 gradients", by_checks("clip_before_unscale")),
    Line("scaler_for_forward_overflow", M, "Using only GradScaler to handle forward overflow",
         practice.forward_overflow),
    Line("clipping_after_step", M, "Clipping after the optimizer step", by_checks("clip_after_step")),
    Line("clipping_each_micro_batch", M, "Clipping each accumulation micro-batch independently",
         by_checks("clip_per_microbatch")),
    Line("logging_post_clip_norms", M, "Logging only post-clipping norms", by_checks("norm_logged_after_clip")),
    Line("every_spike_a_divergence", M, "Treating every spike as divergence", practice.restarts),
    Line("ignoring_nonfinite_events", M, "Ignoring isolated non-finite events", practice.nonfinite_events),
    Line("parameters_in_fp16", M, "Converting all parameters directly to FP16", practice.fp16_parameters),
    Line("trusting_bf16", M, "Assuming BF16 guarantees stability", practice.bf16_watched),
    Line("unmeasured_threshold", M, "Choosing a clipping threshold without measurement", by_checks("always_clipping")),
    Line("precision_supported", L, "The precision is supported by the hardware", launch.hardware),
    Line("autocast_used", L, "Mixed precision by autocast, not by full FP16 conversion", launch.autocast),
    Line("scaler_configured", L, "FP16 GradScaler configured where needed", launch.scaler_configured),
    Line("unscaled_before_clipping", L, "Gradients unscaled before clipping in FP16",
         by_checks("clip_before_unscale")),
    Line("clipped_in_order", L, "Clipping after accumulation and before the step",
         by_checks("clip_after_step", "clip_per_microbatch")),
    Line("clipping_fits_sharding", L, "Global clipping fits the distributed set-up", launch.sharded_clipping),
    Line("raw_norms_logged", L, "Raw gradient norms logged before clipping", launch.raw_norms),
    Line("nonfinite_monitored", L, "Non-finite losses and gradients monitored", launch.monitored),
    Line("extreme_inputs_tested", L, "Model tested with extreme but valid inputs", launch.extreme_inputs),
    Line("checkpoints_complete", L, "Known-good checkpoints hold the state for recovery", launch.checkpoints),
    Line("restart_tested", L, "Restart procedure tested", launch.restart_tested),
    Line("validation_monitored", L, "Validation monitored beside training", launch.validated),
    Line("stability_against_convergence", L, "Stability changes judged by convergence, not only by spikes",
         launch.by_comparison),
)
# fmt: on


def checklist(diagnosis: Diagnosis) -> tuple[Item, ...]:
    """Every line with what this run shows of it, in the order of CHECKLIST."""
    return tuple(_item(line, diagnosis) for line in CHECKLIST)


def _item(line: Line, diagnosis: Diagnosis) -> Item:
    said = line.judge(diagnosis)
    return Item(line.id, line.section, line.title, said.outcome, said.evidence, said.missing)
