"""Does the capture give the loss and the gradient that were recorded? Where it does not, that is the finding."""

from __future__ import annotations

import math

import torch

from recorder.capture import Capture
from recorder.replay.comparison import DOES_NOT_TELL, REFUTES, SUPPORTS, Comparison, short
from recorder.replay.outcome import Outcome, evaluate, recorded_precision
from recorder.replay.setting import Built

# Between bit-exact and this, threads or kernels add up in another order; beyond it, something is missing.
CLOSE = 1e-4
_CLOSE_NORM = 1e-3


def baseline(built: Built, capture: Capture) -> Outcome:
    """The captured batch at the captured state, in the recorded precision and under the recorded loss scale."""
    precision = recorded_precision(capture)
    return evaluate(
        built,
        capture.contents["batch"],
        capture.contents.get("rng", {}),
        label=f"as recorded ({precision})",
        precision=precision,
        loss_scale=capture.facts.get("loss_scale"),
    )


def reproduction(built: Built, capture: Capture, again: Outcome) -> Comparison:
    """Whether the loss came out again, bit for bit, and what is missing where it did not."""
    recorded = capture.facts.get("loss")
    missing = missing_state(built, capture)
    if recorded is None:
        outcome, verdict = "no loss was recorded for the row", DOES_NOT_TELL
    else:
        difference = relative_difference(recorded, again.loss)
        outcome = f"{short(recorded)} recorded, {short(again.loss)} now"
        if difference == 0:
            verdict, outcome = SUPPORTS, f"{outcome}: the same to the last bit"
        elif difference <= CLOSE:
            verdict, outcome = SUPPORTS, f"{outcome}: apart by a share of {difference:.1e}, not bit for bit"
        else:
            verdict = REFUTES
            missing = missing or ["nothing that was to be captured, so the entry's loss may not be the loop's"]
    if missing:
        outcome = f"{outcome}; missing: {'; '.join(missing)}"
    return Comparison(
        "baseline",
        "the captured state and batch give the recorded loss",
        "the loss comes out otherwise; then nothing below can be trusted before the missing state is found",
        outcome,
        verdict,
    )


def gradient_reproduction(capture: Capture, again: Outcome) -> Comparison:
    """Whether the gradient is that of the batch alone: an accumulation has others in it, and so have other losses."""
    recorded, source = capture.facts.get("grad_norm"), capture.facts.get("grad_norm_source")
    outcome = "no gradient norm was recorded before the capture"
    verdict = DOES_NOT_TELL
    if recorded is not None:
        outcome = f"norm {short(recorded)} recorded, {short(again.grad_norm)} now"
        are_finite = math.isfinite(recorded), math.isfinite(again.grad_norm)
        if not any(are_finite) or relative_difference(recorded, again.grad_norm) <= _CLOSE_NORM:
            verdict = SUPPORTS
        elif source == "recorder" or not all(are_finite):
            verdict = REFUTES
        else:
            outcome = f"{outcome}; the recorder did not measure it itself before the clipping"
    return Comparison(
        "gradient",
        "the gradient is that of this batch alone",
        "its norm comes out otherwise: earlier micro-batches, other ranks' batches, another loss or the loop's own "
        "changes are in it; then no step below is the one of the row",
        outcome,
        verdict,
    )


def relative_difference(recorded: float, again: float) -> float:
    """0 where both are the same number, NaN and infinities included; infinite where only one is finite."""
    if recorded == again or (math.isnan(recorded) and math.isnan(again)):
        return 0.0
    if not (math.isfinite(recorded) and math.isfinite(again)):
        return math.inf
    return abs(again - recorded) / max(abs(recorded), 1e-300)


def missing_state(built: Built, capture: Capture) -> list[str]:
    """What the forward depends on and the capture does not hold, a line each."""
    contents, modules = capture.contents, list(built.model.modules())
    missing = list(capture.left_out)
    draws = [type(m).__name__ for m in modules if "Dropout" in type(m).__name__ and m.training]
    if draws and "torch" not in contents.get("rng", {}):
        missing.append(f"random state, which {draws[0]} draws from")
    names = [name for name, _ in built.model.named_buffers()]
    if names and not contents.get("buffers"):
        missing.append(f"buffers ({', '.join(names[:3])}), as they were before the forward")
    if not torch.are_deterministic_algorithms_enabled() and built.device.type == "cuda":
        missing.append("deterministic algorithms (torch.use_deterministic_algorithms)")
    return missing
