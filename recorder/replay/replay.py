"""One replay: every evaluation and comparison of a captured row, as one dict that is written into the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

import torch

from recorder.capture import Capture, captures_of, rank_of, read_capture, row_of
from recorder.replay.comparison import DOES_NOT_TELL, REFUTES, SUPPORTS, Comparison
from recorder.replay.data import is_it_the_batch, is_it_the_state, other_batches, other_states
from recorder.replay.history import is_it_the_clipping, is_it_the_history, is_it_the_length, is_the_history_lost
from recorder.replay.inputs import not_finite_before
from recorder.replay.outcome import DTYPES, Outcome, recorded_precision
from recorder.replay.precisions import in_each_precision, range_and_arithmetic
from recorder.replay.reproduce import baseline, gradient_reproduction, reproduction
from recorder.replay.setting import Built, ReplayError, in_one_line, load_entry, restore, undisturbed
from recorder.replay.summary import summary
from recorder.replay.unwrapped import unwrapped
from recorder.replay.updates import Update, owned_by, updates
from recorder.store import StoreError
from recorder.store.documents import read_manifest, to_json
from recorder.store.files import replace_file

VERSION = 1
RESULT = "replay.json"

_OF_STEPS = ("step_length", "optimizer_history", "optimizer_lost", "clipping")


def replay(run: Path, row: int, entry: str, rank: int = 0, checkpoints: Sequence[Path] = ()) -> dict[str, Any]:
    """Replay a row that a rank captured, write `replay.json` beside the capture, and return what it holds.

    `checkpoints` are files of earlier parameters, which the batch is fed to as well. The generators of random numbers
    are left as they were. Raises ReplayError where the row was not captured or the entry does not fit, StoreError where
    its capture is damaged; other captures that are damaged are left out.
    """
    read_manifest(run)  # which says what is wrong with a path that is no run
    paths = captures_of(run, rank)
    own = next((path for path in paths if row_of(path) == row), None)
    if own is None:
        rows = ", ".join(str(row_of(path)) for path in paths) or "none"
        ranks = sorted({of for path in captures_of(run) if (of := rank_of(path)) != rank})
        elsewhere = f"; there are captures of rank {', '.join(map(str, ranks))}: give --rank" if ranks else ""
        raise ReplayError(f"{run}: row {row} was not captured on rank {rank}; captured rows: {rows}{elsewhere}")
    capture = read_capture(own)
    if "batch" not in capture.contents:
        raise ReplayError(f"the capture of row {row} holds no batch: {'; '.join(capture.left_out)}")
    others, damaged = _readable(path for path in paths if path != own)
    with undisturbed():
        result = result_of(load_entry(entry), capture, others, checkpoints)
    result["not_evaluated"] += damaged
    replace_file(capture.path / RESULT, to_json({**result, "entry": entry}, indent=2) + b"\n")
    return result


def is_judged(result: Mapping[str, Any]) -> bool:
    """Whether what was recorded came out again: the loss, or the gradient where no loss was recorded."""
    loss = result["reproduced"]["verdict"]
    gradient = next(each["verdict"] for each in result["comparisons"] if each["id"] == "gradient")
    return bool(loss == SUPPORTS or (loss == DOES_NOT_TELL and gradient == SUPPORTS))


def result_of(
    built: Built, capture: Capture, others: list[Capture], checkpoints: Sequence[Path] = ()
) -> dict[str, Any]:
    """Everything that the replay of one capture finds."""
    capture, others = unwrapped(capture, built.model), [unwrapped(each, built.model) for each in others]
    recorded, refusals = recorded_precision(capture), list[str]()
    if recorded not in DTYPES:
        raise ReplayError(
            f"row {capture.row} ran in {recorded}, which replay cannot run in; it can in {', '.join(DTYPES)}"
        )
    built = replace(built, owned=owned_by(capture))
    running = built.copy()  # what a forward leaves in a model beside its buffers is not copied further
    restore(running, capture)
    again = baseline(running, capture)
    reproduced, gradient = reproduction(running, capture, again), gradient_reproduction(capture, again)
    precisions, unrunnable = in_each_precision(built, capture)
    batches = other_batches(running, capture, others, refusals)
    states = other_states(running, capture, others, checkpoints, refusals)
    batch = is_it_the_batch(again, batches)
    earlier = next((c for c in reversed(others) if c.row < capture.row), None)
    stepped, refusal = _updates(built, capture, earlier)
    comparisons = [
        gradient,
        *range_and_arithmetic(recorded, precisions, unrunnable, not_finite_before(capture)),
        batch,
        is_it_the_state(again, states, batch),
        is_it_the_length(stepped),
        is_it_the_history(stepped),
        is_the_history_lost(stepped, capture, earlier),
        is_it_the_clipping(stepped),
    ]
    trusted = _as_trusted(comparisons, reproduced, gradient, capture)
    return {
        "version": VERSION,
        "summary": summary(reproduced, trusted),
        "row": capture.row,
        "step": capture.facts.get("step"),
        "batch_id": capture.facts.get("batch_id"),
        "device": str(built.device),
        "torch": torch.__version__,
        "reproduced": reproduced.plain(),
        "as_recorded": again.plain(),
        "precisions": _plain(list(precisions.values())),
        "batches": _plain(batches),
        "states": _plain(states),
        "updates": _plain(list(stepped.values())),
        "updates_refused": refusal,
        "not_evaluated": refusals,
        "comparisons": [comparison.plain() for comparison in trusted],
    }


def _readable(paths: Iterable[Path]) -> tuple[list[Capture], list[str]]:
    found, damaged = [], []
    for path in paths:
        try:
            found.append(read_capture(path))
        except StoreError as error:
            damaged.append(str(error))
    return found, damaged


def _updates(built: Built, capture: Capture, earlier: Capture | None) -> tuple[dict[str, Update], str | None]:
    try:
        return updates(built, capture, earlier), None
    except ReplayError as error:
        return {}, str(error)
    except Exception as error:  # noqa: BLE001  # a captured state that fits no optimizer raises whatever it meets first
        return {}, in_one_line(error)


def _as_trusted(
    comparisons: list[Comparison], reproduced: Comparison, gradient: Comparison, capture: Capture
) -> list[Comparison]:
    """The comparisons without a verdict where what they rest on did not come out again."""
    norm = capture.facts.get("grad_norm")
    if reproduced.verdict == REFUTES:
        why, untrusted = "the baseline did not reproduce", {c.id for c in comparisons}
    elif reproduced.verdict == DOES_NOT_TELL and gradient.verdict != SUPPORTS:
        why, untrusted = "no recorded loss says whether the baseline reproduces", {c.id for c in comparisons}
    elif gradient.verdict == REFUTES:
        why, untrusted = "the gradient did not reproduce", set(_OF_STEPS)
        if norm is not None and not isfinite(norm):  # what went wrong is not in this batch's own gradient
            untrusted = {c.id for c in comparisons if c is not gradient}
    else:
        return comparisons
    return [
        replace(c, outcome=f"{c.outcome}; {why}", verdict=DOES_NOT_TELL) if c.id in untrusted else c
        for c in comparisons
    ]


def _plain(found: list[Outcome] | list[Update]) -> list[dict[str, Any]]:
    return [each.plain() for each in found]
