"""What replays add to the triage table: a captured row that was fed again tells what its columns could not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import isfinite, nan

import numpy as np

from spikeview.analysis.incident import Incident
from spikeview.captured import REFUTES, SUPPORTS, Capture, Replay
from spikeview.format import count, number, shown
from spikeview.rules.context import Context, Judgement
from spikeview.rules.finding import Verdict
from spikeview.rules.wording import row_of
from spikeview.run import Run

# A norm is far over the others, or as theirs, from these factors on: those of the recorder's own comparisons.
FAR, NEAR, ENOUGH = 3.0, 1.25, 2


@dataclass(frozen=True)
class Word:
    """What a replay says of a rule: the verdict that it gives where the columns gave none, and why.

    `is_next_step` says whether it did what the rule's next step asks for, `overturns` whether the columns' own verdict
    gives way to it.
    """

    verdict: Verdict
    text: str
    is_next_step: bool = True
    overturns: bool = False


HIGH_ALONE = "the batch is high where others are ordinary at the same parameters"
HIGH_ALIKE = "other batches are as high at the same parameters"
LOST = "the optimizer lost its history: its state has seen fewer steps than the run executed"
HARMFUL = "the step raises the loss of its own batch with the optimizer's history, and not without it"
TOO_LONG = "the step is too long: it raises the loss of its own batch, and a tenth of it lowers it"
RANGE = "it is finite in a wider format: the numbers leave the range of the recorded one"
ARITHMETIC = "no precision gives a finite value, fp64 neither: it is the arithmetic"


def captures_within(run: Run, incident: Incident, accused: int | None) -> list[Capture]:
    """The captures from the accused transition to the incident's end; that of the first bad row leads."""
    first = row_of(run, incident.first_bad.position)
    begin = first if accused is None else min(first, row_of(run, accused))
    last = row_of(run, incident.last)
    return sorted((each for each in run.captures if begin <= each.row <= last), key=lambda each: each.row != first)


def with_replay(rule: str, said: Judgement, context: Context) -> tuple[Judgement, bool]:
    """The judgement with what replays of the incident's rows say of it, and whether they were its next step."""
    if rule not in _WORDS or not context.run.captures:
        return said, False
    for position, replay in _replays(context):
        word = _WORDS[rule](context, position, replay)
        if word is not None:
            return _joined(said, word, context, position), word.is_next_step
    return said, False


def _joined(said: Judgement, word: Word, context: Context, position: int) -> Judgement:
    told = f"the replay of {context.row(position)}"
    if said.verdict is Verdict.CANNOT_TELL or (word.overturns and said.verdict is not word.verdict):
        return Judgement(word.verdict, f"{told} tells: {word.text}; {said.evidence}", np.array([position]))
    how = "bears it out" if said.verdict is word.verdict else "speaks against it"
    return replace(said, evidence=f"{said.evidence}; {told} {how}: {word.text}")


def _replays(context: Context) -> Iterator[tuple[int, Replay]]:
    """Trusted replays with the positions of their rows, the first bad row's first."""
    rows = context.extent if context.accused is None else np.union1d(context.extent, [context.accused])
    position_of = {row_of(context.run, int(position)): int(position) for position in rows}
    for capture in captures_within(context.run, context.incident, context.accused):
        position = position_of.get(capture.row)
        if position is not None and capture.replay is not None and capture.replay.is_trusted:
            yield position, capture.replay


def _spike(context: Context, position: int, replay: Replay) -> Word | None:
    """Of the row whose loss left first: is it its batch. That it is not, while the step harms, overturns columns."""
    spiked = context.extent[context.out("loss")[context.extent]]
    if position != (spiked[0] if len(spiked) else context.first):
        return None
    if replay.verdict("batch") == SUPPORTS:
        return Word(Verdict.MATCHED, HIGH_ALONE)
    if replay.verdict("batch") == REFUTES:
        return Word(Verdict.RULED_OUT, HIGH_ALIKE, overturns=_harm(replay) is not None)
    return None


def _update(context: Context, position: int, replay: Replay) -> Word | None:
    """The optimizer is accused, whatever its columns were like, unless the batch is."""
    harm = _harm(replay)
    if harm is None or not (harm == LOST or position in context.transitions):
        return None
    return Word(Verdict.MATCHED, harm, overturns=replay.verdict("batch") != SUPPORTS)


def _harm(replay: Replay) -> str | None:
    """What is wrong with the step of the row, in words."""
    words = {"optimizer_lost": LOST, "optimizer_history": HARMFUL, "step_length": TOO_LONG}
    return next((text for name, text in words.items() if replay.verdict(name) == SUPPORTS), None)


def _large_norm(context: Context, position: int, replay: Replay) -> Word | None:
    """The norm beside those of other batches at the same parameters, unless others' gradients are in it."""
    others = [each.grad_norm for each in replay.batches]
    if position < context.first or len(others) < ENOUGH or not all(map(isfinite, others)):
        return None
    norm, largest = (nan if replay.own is None else replay.own.grad_norm), max(others)
    if replay.verdict("gradient") == REFUTES or not isfinite(norm) or largest <= 0:
        return None
    beside = f"norm {number(norm)}, and {number(largest)} at most with {count(len(others))} other batches"
    if norm > FAR * largest:
        return Word(Verdict.MATCHED, beside)
    return Word(Verdict.RULED_OUT, beside) if norm <= NEAR * largest and _is_all(context) else None


def _broken_gradient(context: Context, position: int, replay: Replay) -> Word | None:
    if position < context.first or replay.own is None or replay.verdict("gradient") == REFUTES:
        return None
    if not isfinite(replay.own.loss):
        return None
    loss = f"the loss is {number(replay.own.loss)}"
    if replay.own.first_parameter is not None:
        broken, why = f"the gradient of {shown(replay.own.first_parameter)} is not finite", _why(replay)
        return Word(Verdict.MATCHED, f"{loss}, and {broken}{why}", bool(why))
    return Word(Verdict.RULED_OUT, f"{loss}, and every gradient is finite") if _is_all(context) else None


def _lost_loss(context: Context, position: int, replay: Replay) -> Word | None:
    if position < context.first or replay.own is None:
        return None
    if not isfinite(replay.own.loss):
        why = _why(replay)
        return Word(Verdict.MATCHED, f"the loss is {number(replay.own.loss)}{why}", bool(why))
    return Word(Verdict.RULED_OUT, f"the loss is {number(replay.own.loss)}") if _is_all(context) else None


def _why(replay: Replay) -> str:
    if replay.verdict("numerical_range") == SUPPORTS:
        return f"; {RANGE}"
    return f"; {ARITHMETIC}" if replay.verdict("arithmetic") == SUPPORTS else ""


def _is_all(context: Context) -> bool:
    """Whether an incident has no row but one: what one of several shows rules nothing out for the others."""
    return len(context.extent) == 1


_WORDS: dict[str, Callable[[Context, int, Replay], Word | None]] = {
    "loss_nonfinite": _lost_loss,
    "grad_nonfinite_loss_finite": _broken_gradient,
    "large_norm_tiny_coef": _large_norm,
    "ordinary_grad_abnormal_update": _update,
    "loss_spike_clean_transition": _spike,
}
