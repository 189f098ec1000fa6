"""What the steps that were tried say: its length, the optimizer's history, whether that was lost, the clipping."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from torch import Tensor

from recorder.capture import Capture
from recorder.replay.comparison import DOES_NOT_TELL, FAR, NEAR, REFUTES, SUPPORTS, Comparison, short
from recorder.replay.updates import SAME, Update, optimizer_name, state_of


def is_it_the_length(found: Mapping[str, Update]) -> Comparison:
    """The length of the step is accused where all of it raises the loss of its own batch, and a tenth lowers it."""
    own, tenth = _taken(found), found.get("tenth")
    verdict = DOES_NOT_TELL
    if own is not None and tenth is not None and isfinite(own.loss_before) and own.update_norm > 0:
        if not own.raises_loss:
            verdict = REFUTES
        elif tenth.loss_after < tenth.loss_before:
            verdict = SUPPORTS
    return Comparison(
        "step_length",
        "the step is too long: all of it raises the loss of its own batch, a tenth of it lowers it",
        "the step does not raise that loss",
        "the step was not tried" if own is None or tenth is None else _told([own, tenth]),
        verdict,
    )


def is_it_the_history(found: Mapping[str, Update]) -> Comparison:
    """The optimizer's history is accused where the step raises the loss with it, and does not without it.

    That the steps are of another length accuses nothing: a momentum lengthens them, and a fresh Adam takes its longest.
    """
    pair, verdict = _pair(found, "own", "no"), DOES_NOT_TELL
    if pair and all(isfinite(u.update_norm) and isfinite(u.loss_before) for u in pair):
        own, fresh = pair
        if not own.raises_loss or _verdict(own, fresh) == REFUTES:
            verdict = REFUTES
        elif not fresh.raises_loss:
            verdict = SUPPORTS
    return Comparison(
        "optimizer_history",
        "it is the optimizer's history: with it this step raises the loss of its own batch, without it it does not",
        "the step does not raise that loss, or is the same without the history",
        _told(pair) if pair else "the step was not tried",
        verdict,
    )


def is_the_history_lost(found: Mapping[str, Update], capture: Capture, earlier: Capture | None) -> Comparison:
    """A lost history shows as fewer steps in the optimizer's state than the run executed.

    Going back to an earlier checkpoint leaves fewer as well, but more than this segment of the run executed.
    """
    pair = _pair(found, "own", "earlier")
    outcome = _told(pair) if pair else "no earlier capture holds a state of the optimizer"
    seen, executed = _steps_seen(capture, earlier), capture.facts.get("executed_n")
    here, verdict = capture.facts.get("executed_in_segment"), DOES_NOT_TELL
    if seen is not None and executed is not None:
        outcome = f"its state has seen {seen} of the {executed} steps that the run executed; {outcome}"
        steps = _verdict(*pair) if pair else DOES_NOT_TELL
        if seen >= executed or (here is not None and seen > here):
            verdict = REFUTES
        elif here is not None and (steps == SUPPORTS or (seen == here and steps != REFUTES)):
            verdict = SUPPORTS
    return Comparison(
        "optimizer_lost",
        "the optimizer lost its history",
        "its state has seen as many steps as the run executed, or steps from before the run was resumed",
        outcome,
        verdict,
    )


def _steps_seen(capture: Capture, earlier: Capture | None) -> int | None:
    """The steps in the state of the row's optimizer; None for one that keeps no count of them."""
    name = optimizer_name(capture)
    state, before = (None if c is None else state_of(c, name) for c in (capture, earlier))
    held = list((state or {}).get("state", {}).values())
    if state is None or not (held or (before or {}).get("state")):
        return None
    counts = [_count(each.get("step")) for each in held if isinstance(each, Mapping)]
    known = [count for count in counts if count is not None]
    return None if held and not known else max(known, default=0)


def _count(step: Any) -> int | None:
    """A count of steps, which most optimizers keep as a tensor."""
    if isinstance(step, Tensor) and step.numel() == 1:
        step = step.item()
    return int(step) if isinstance(step, (int, float)) and isfinite(step) else None


def is_it_the_clipping(found: Mapping[str, Update]) -> Comparison:
    """Whether the clipping changed where the step led."""
    pair = [found[key] for key in ("own clipped", "own unclipped") if key in found]
    was_clipped = len(pair) == 2
    return Comparison(
        "clipping",
        "the clipping decides where this step leads",
        "both steps are as long and leave the same loss",
        _told(pair) if was_clipped else "the row was not clipped" if found else "the step was not tried",
        _verdict(*pair) if was_clipped else DOES_NOT_TELL,
    )


def _taken(found: Mapping[str, Update]) -> Update | None:
    """The step as it was taken: clipped where the row was."""
    return found.get("own clipped", found.get("own unclipped"))


def _pair(found: Mapping[str, Update], one: str, other: str) -> list[Update]:
    """The two histories' steps, as they were taken: clipped where the row was."""
    clip = "clipped" if "own clipped" in found else "unclipped"
    keys = [f"{one} {clip}", f"{other} {clip}"]
    return [found[key] for key in keys] if all(key in found for key in keys) else []


def _verdict(one: Update, other: Update) -> str:
    """Whether two steps are of another length, or the same; one without a length tells nothing."""
    lengths, losses = (one.update_norm, other.update_norm), (one.loss_after, other.loss_after)
    if not all(map(isfinite, lengths)) or min(lengths) <= 0:
        return DOES_NOT_TELL
    if max(lengths) > FAR * min(lengths):
        return SUPPORTS
    near = max(lengths) <= NEAR * min(lengths) and abs(losses[0] - losses[1]) <= SAME * max(abs(losses[0]), 1e-12)
    return REFUTES if near else DOES_NOT_TELL


def _told(found: Iterable[Update]) -> str:
    return "; ".join(
        f"{u.label}: update ratio {short(u.update_ratio)}, loss {short(u.loss_before)} -> {short(u.loss_after)}"
        for u in found
    )
