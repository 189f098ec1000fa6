"""Other batches at the same parameters, and the same batch at other parameters: the batch or the state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import Any

from recorder.capture import Capture
from recorder.replay.checkpoint import at_checkpoint
from recorder.replay.comparison import DOES_NOT_TELL, FAR, NEAR, REFUTES, SUPPORTS, Comparison, short
from recorder.replay.outcome import Outcome, as_far_as_they_go, evaluate, recorded_precision
from recorder.replay.setting import Built, ReplayError, in_one_line, restore

_ENOUGH = 2


def other_batches(built: Built, capture: Capture, others: Sequence[Capture], refusals: list[str]) -> list[Outcome]:
    """The batches before it and a fresh one, at the captured parameters.

    What a trigger captured is high by choice, wherever its fault lies, so it is no measure of what is ordinary; what
    was captured on request is asked only where the others are too few.
    """
    tripped = {c.row for c in others if not c.facts.get("on_request")}
    earlier = [each for each in capture.contents.get("earlier", ()) if isinstance(each, dict) and "batch" in each]
    rows = [each.get("row") for each in earlier]
    before = {
        row: partial(each.get, "batch")
        for row, each in zip(rows, earlier, strict=True)
        if isinstance(row, int) and row not in tripped
    }
    batches: list[tuple[str, Callable[[], Any]]] = [(f"row {row}", batch) for row, batch in before.items()]
    if built.fresh is not None:
        batches.append(("a fresh batch", built.fresh))
    if len(batches) < _ENOUGH:
        known = [c for c in others if "batch" in c.contents and c.row not in tripped | before.keys()]
        batches += [(f"row {c.row} (captured)", partial(c.contents.get, "batch")) for c in known]
    return as_far_as_they_go((partial(_at, built, capture, label, batch) for label, batch in batches), refusals)


def other_states(
    built: Built, capture: Capture, others: Sequence[Capture], checkpoints: Sequence[Path], refusals: list[str]
) -> list[Outcome]:
    """The captured batch at the parameters of earlier captures and of checkpoints."""
    batch = partial(capture.contents.get, "batch")
    earlier = [c for c in others if c.row < capture.row and "parameters" in c.contents]
    runs = [partial(_at, built, c, f"parameters of row {c.row}", batch) for c in earlier]
    runs += [partial(_at_checkpoint, built, capture, path, batch) for path in checkpoints]
    return as_far_as_they_go(runs, refusals)


def _at_checkpoint(built: Built, capture: Capture, path: Path, batch: Callable[[], Any]) -> Outcome:
    return _at(built, at_checkpoint(built, capture, path), f"parameters of {path.name}", batch)


def _at(built: Built, state: Capture, label: str, batch: Callable[[], Any]) -> Outcome:
    try:
        restore(built, state)
        given = batch()
    except Exception as error:
        raise ReplayError(f"{label}: {in_one_line(error)}") from error
    scale, rng = state.facts.get("loss_scale"), state.contents.get("rng", {})
    return evaluate(built, given, rng, label=label, precision=recorded_precision(state), loss_scale=scale)


def is_it_the_batch(own: Outcome, others: Sequence[Outcome]) -> Comparison:
    """The batch is accused where others are ordinary at the same parameters."""
    finite = [o.finite for o in others]
    if len(others) < _ENOUGH:
        verdict = DOES_NOT_TELL
    elif not own.finite:
        verdict = SUPPORTS if all(finite) else DOES_NOT_TELL if any(finite) else REFUTES
    else:
        losses, norms = max(map(_loss, others)), max(map(_norm, others))
        apart = _is_far(own.loss, losses) or _is_far(own.grad_norm, norms)
        near = _is_near(own.loss, losses) and _is_near(own.grad_norm, norms)
        verdict = SUPPORTS if apart else REFUTES if near else DOES_NOT_TELL
    return Comparison(
        "batch",
        "it is the batch: others are ordinary at the same parameters",
        "other batches are as high there",
        _told(own, others) if others else "no other batch is held: keep some with CapturePolicy(batches=)",
        verdict,
    )


def is_it_the_state(own: Outcome, states: Sequence[Outcome], batch: Comparison) -> Comparison:
    """The parameters are accused where the same batch was ordinary at earlier ones and others are as high as it now."""
    verdict = DOES_NOT_TELL
    if states and not any(o.finite for o in states):
        verdict = REFUTES
    elif states:
        loss, norm = min(map(_loss, states)), min(map(_norm, states))
        if not own.finite or _is_far(own.loss, loss) or _is_far(own.grad_norm, norm):
            verdict = SUPPORTS if batch.verdict == REFUTES else DOES_NOT_TELL
        elif _is_near(own.loss, loss) and _is_near(own.grad_norm, norm):
            verdict = REFUTES
    return Comparison(
        "state",
        "it is the parameters: the same batch is ordinary at earlier ones, and others are high at these",
        "the batch is as high at earlier parameters",
        _told(own, states)
        if states
        else "no earlier parameters: capture an early row too, or give a checkpoint with --checkpoint",
        verdict,
    )


def _loss(outcome: Outcome) -> float:
    return outcome.loss if outcome.finite else inf


def _norm(outcome: Outcome) -> float:
    return outcome.grad_norm if outcome.finite else inf


def _is_far(value: float, other: float) -> bool:
    """Far over it. There is no such order over zero or under it."""
    return isfinite(other) and other > 0 and value > FAR * other


def _is_near(value: float, other: float) -> bool:
    return value <= other or (other > 0 and value <= NEAR * other)


def _told(own: Outcome, others: Sequence[Outcome]) -> str:
    return "; ".join(f"{o.label}: loss {short(o.loss)}, norm {short(o.grad_norm)}" for o in (own, *others))
