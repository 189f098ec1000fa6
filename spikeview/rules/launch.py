"""What a run shows of what should be verified before a launch: each function answers one line of the checklist."""

from __future__ import annotations

import numpy as np

from spikeview.cells import Kind
from spikeview.format import number, plural, shown
from spikeview.rules.diagnosis import Diagnosis
from spikeview.rules.finding import CheckResult, Outcome
from spikeview.rules.practice import by_checks, listed, parameter_types, precisions
from spikeview.rules.precision import HALF
from spikeview.rules.verdict import Answer, unknown, untold


def hardware(diagnosis: Diagnosis) -> Answer:
    """The precision and the device; what the device supports, nobody records."""
    ran, device = precisions(diagnosis.run), diagnosis.run.manifest.get("device")
    where = f"on {shown(str(device))}" if device else "on an unrecorded device"
    return untold(
        f"ran in {listed(ran)} {where}; what it supports is not recorded" if ran else "nothing recorded tells"
    )


def autocast(diagnosis: Diagnosis) -> Answer:
    """Whether half precision comes from autocast over wider parameters."""
    types, ran = parameter_types(diagnosis.run), precisions(diagnosis.run)
    if types is None or ran is None:
        return untold("types of parameters or precision of the forward not recorded", "model", "precision")
    text = f"parameters in {listed(types)}, forward in {listed(ran)}"
    if "float16" in types:
        return Answer(Outcome.FAILED, text)
    mixed = any(each in HALF for each in ran) and "bfloat16" not in types
    return Answer(Outcome.PASSED if mixed else Outcome.NOT_APPLICABLE, text)


def scaler_configured(diagnosis: Diagnosis) -> Answer:
    """Whether an FP16 run has a loss scale, and one that works."""
    ran, scaled = precisions(diagnosis.run) or [], diagnosis.run.recorded("loss_scale").any()
    if not scaled and "fp16" in ran:
        return Answer(Outcome.FAILED, "a forward in fp16 without a loss scale")
    if not scaled:
        return Answer(Outcome.NOT_APPLICABLE, f"ran in {listed(ran)}") if ran else unknown("precision")
    return by_checks("scale_never_updates", "scale_collapse", "scale_oscillation", "skip_rate")(diagnosis)


def sharded_clipping(diagnosis: Diagnosis) -> Answer:
    """Whether there is more than one rank to clip over; how the parameters are shared out, nobody records."""
    world = diagnosis.run.manifest.get("world_size")
    if world is None:
        return unknown("world_size")
    if world == 1:
        return Answer(Outcome.NOT_APPLICABLE, "one rank")
    return untold(f"{world} ranks; how the parameters are sharded is not recorded")


def raw_norms(diagnosis: Diagnosis) -> Answer:
    """Whether norms were recorded, and from before the clipping."""
    run = diagnosis.run
    if not run.recorded("grad_norm").any():
        return unknown("grad_norm")
    by_check = by_checks("norm_logged_after_clip")(diagnosis)
    if by_check.outcome in (Outcome.FAILED, Outcome.CANNOT_TELL):
        return by_check
    return Answer(Outcome.PASSED, f"recorded on {plural(int(np.count_nonzero(run.recorded('grad_norm'))), 'row')}")


def monitored(diagnosis: Diagnosis) -> Answer:
    """Whether losses were recorded, and gradients counted that are not finite."""
    run = diagnosis.run
    if absent := [name for name in ("loss", "grad_nonfinite_params") if not run.recorded(name).any()]:
        return unknown(*absent)
    rows = int(np.count_nonzero(run.recorded("grad_nonfinite_params")))
    return Answer(Outcome.PASSED, f"recorded, and gradients looked at on {plural(rows, 'row')}")


def extreme_inputs(diagnosis: Diagnosis) -> Answer:
    """How large the inputs of this run were; what else the model was tried with, nobody records."""
    run = diagnosis.run
    values = run.values("input_absmax")[run.kind("input_absmax") == Kind.FINITE]
    if not len(values):
        return unknown("input_absmax")
    low, high = number(float(values.min())), number(float(values.max()))
    return untold(f"largest inputs of this run from {low} to {high}; which are extreme but valid is not recorded")


def checkpoints(diagnosis: Diagnosis) -> Answer:
    """Whether what was restored was complete; what a checkpoint holds shows in nothing else."""
    noted = sum(event.get("kind") == "checkpoint" for event in diagnosis.run.events)
    text = f"{plural(noted, 'checkpoint')} noted" if noted else "no checkpoint noted"
    return _by_resumes(diagnosis, f"{text}; what a checkpoint holds shows only when it is restored")


def restart_tested(diagnosis: Diagnosis) -> Answer:
    """Whether a restart was seen to work."""
    return _by_resumes(diagnosis, "no restart in this run")


def validated(diagnosis: Diagnosis) -> Answer:
    """Whether validation losses were noted."""
    run = diagnosis.run
    rows = [event.get("row") for event in run.events if event.get("kind") == "validation"]
    if rows:
        return Answer(Outcome.PASSED, f"{plural(len(rows), 'validation')} noted, the last after row {rows[-1]}")
    return untold("no validation noted in this run", "validation")


def by_comparison(diagnosis: Diagnosis) -> Answer:
    """One run cannot tell."""
    return untold("takes two runs: spikeview compare BASELINE RUN")


def _by_resumes(diagnosis: Diagnosis, otherwise: str) -> Answer:
    check = _check(diagnosis, "resume_incomplete")
    if check.outcome is Outcome.NOT_APPLICABLE:
        return untold(otherwise)
    return Answer(check.outcome, check.evidence, missing=check.missing)


def _check(diagnosis: Diagnosis, id: str) -> CheckResult:
    return next(check for check in diagnosis.checks if check.id == id)
