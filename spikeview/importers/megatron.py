"""Megatron-LM, Megatron-DeepSpeed and GPT-NeoX: one line for every `log_interval` iterations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from spikeview.format import plural
from spikeview.importers.importer import Asked, Importer
from spikeview.importers.naming import user_name
from spikeview.importers.numbers import number
from spikeview.importers.source import Source
from spikeview.importers.text import PREFIX, Gathered, Lines, matches
from spikeview.importers.windows import clocks
from spikeview.meaning import AFTER, ALL_RANKS, BEFORE, HIDDEN, MEAN, STEP, Meaning, stride
from spikeview.run import Run

LINES = Lines(
    "a Megatron log",
    b"iteration",
    re.compile(
        rb"(?m)^" + PREFIX + rb"[^\n]*?\biteration +(?P<step>\d+)/ *\d+ \|(?P<fields>[^\n]*)$"
        rb"|validation loss at iteration (?P<validated>\d+)[^|\n]*\|[^:|\n]*: *(?P<loss>[^ |\n]+)"
    ),
)

# The program prints a loss only where its mean is above zero, which a NaN is not. Only iterations that were not skipped
# are in the mean. Scale and rate are read after the step, and the norm is that of the last iteration.
MEANINGS = {
    "loss": Meaning("lm loss", MEAN, BEFORE, ALL_RANKS, nonfinite=HIDDEN),
    "grad_norm": Meaning("grad norm", STEP, BEFORE, ALL_RANKS, clipping=BEFORE),
    "lr": Meaning("learning rate", STEP, AFTER),
    "loss_scale": Meaning("loss scale", STEP, AFTER),
    "param_norm": Meaning("params norm", STEP, AFTER),
}
SKIPPED, NAN = "number of skipped iterations", "number of nan iterations"
TAKEN = {"learning rate": "lr", "grad norm": "grad_norm", "loss scale": "loss_scale", "params norm": "param_norm"}


def read(source: Source, asked: Asked) -> Run:
    """One row a line; of a row's skips only the number is known."""
    found = Gathered()
    for match in matches(LINES, source, asked, found):
        if match["step"] is None:
            loss = number(match["loss"].decode("utf-8", "replace"))
            found.event("validation", step=int(match["validated"]), loss=loss)
        else:
            found.row(step=int(match["step"]), **_fields(match["fields"].decode("utf-8", "replace")))
    name = _loss(found.rows)
    told = _clocks(found.rows) if all(row.get(SKIPPED) is not None for row in found.rows) else {}
    hidden = _hidden(found.rows, name, told.get("executed", []))
    if hidden:
        found.notes.append(
            f"{plural(hidden, 'row')} without a loss though steps executed: its mean was NaN, which is not printed"
        )
    found.rows = [_named(row, name) for row in found.rows]
    return found.run(source, LINES, MEANINGS, told)


def _fields(text: str) -> dict[str, float | None]:
    found = {}
    for part in text.split("|"):
        name, colon, value = part.partition(":")
        if colon and name.strip():
            found[name.strip().replace("_", " ")] = number(value)
    return found


def _loss(rows: Sequence[Mapping[str, Any]]) -> str:
    """The name of the loss: `lm loss`, else what ends like one."""
    names = dict.fromkeys(name for row in rows for name in row)
    return next(
        (name for name in ("lm loss", "loss", "total loss", *names) if name in names and name.endswith("loss")),
        "lm loss",
    )


def _clocks(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    skips = [int(row[SKIPPED]) for row in rows]
    window = stride([row["step"] for row in rows])
    if window is None and any(skips):
        return {"attempted": [True] * len(rows)}
    return clocks([max(window or 1, skip) for skip in skips], skips)


def _hidden(rows: Sequence[dict[str, Any]], loss: str, executed: Sequence[bool]) -> int:
    """Fill in the losses that were NaN, and count them: the program prints every other mean."""
    if not any(row.get(loss) is not None for row in rows):
        return 0
    found = [row for row, ran in zip(rows, executed, strict=False) if ran and row.get(loss) is None]
    for row in found:
        row[loss] = float("nan")
    return len(found)


def _named(row: Mapping[str, Any], loss: str) -> dict[str, Any]:
    taken = TAKEN | {loss: "loss", "step": "step"}
    return {taken.get(name) or user_name(name.replace(" ", "_")): value for name, value in row.items()}


MEGATRON = Importer("Megatron", LINES.declines, read)
