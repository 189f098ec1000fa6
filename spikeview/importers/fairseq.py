"""fairseq, in its formats `json` and `simple`: a line for every `log_interval` updates, a note for each overflow."""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import Any

from spikeview.importers.importer import Asked, Importer
from spikeview.importers.numbers import number
from spikeview.importers.source import Source
from spikeview.importers.text import NUMBER, PREFIX, Gathered, Lines, matches
from spikeview.importers.windows import clocks
from spikeview.meaning import AFTER, ALL_RANKS, BEFORE, MEAN, STEP, Meaning, stride
from spikeview.run import Run

LINES = Lines(
    "a fairseq log",
    b"train_inner",
    re.compile(
        rb"(?m)^"
        + PREFIX
        + rb"[^\n]*?(?:\| (?P<kind>train_inner|valid) \| (?:(?P<json>\{[^\n]*\})|(?P<simple>epoch[^\n]*=[^\n]*))"
        rb"|NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: (?P<scale>" + NUMBER + rb"))"
    ),
)

# Meters are emptied after each line. The loss is in bits. Rate and scale are those that the update has set.
MEANINGS = {
    "loss": Meaning("loss", MEAN, BEFORE, ALL_RANKS),
    "grad_norm": Meaning("gnorm", MEAN, BEFORE, ALL_RANKS, clipping=BEFORE),
    "lr": Meaning("lr", STEP, AFTER),
    "loss_scale": Meaning("loss_scale", STEP, AFTER),
}
TAKEN = {"loss": "loss", "gnorm": "grad_norm", "lr": "lr", "loss_scale": "loss_scale"}


def read(source: Source, asked: Asked) -> Run:
    """One row a line; where every update is a line, each overflow is a row too, before the update that followed it."""
    found = Gathered()
    overflows: list[float] = []
    before: list[list[float]] = []
    for match in matches(LINES, source, asked, found):
        if match["scale"] is not None:
            overflows.append(float(match["scale"]))
            continue
        values = _values(match)
        step = values.pop("num_updates", None) or values.pop("valid_num_updates", None)
        if match["kind"] == b"valid":
            found.event("validation", step=step, loss=values.get("valid_loss"))
        elif step is not None:
            found.row(step=int(step), **{TAKEN.get(name) or f"user_{name}": value for name, value in values.items()})
            before += [overflows] if len(found.rows) > len(before) else []
            overflows = []
    window = stride([row["step"] for row in found.rows]) or 1
    if window > 1:
        skips = [len(each) for each in before]
        return found.run(source, LINES, MEANINGS, clocks([window + skip for skip in skips], skips))
    pairs = zip(found.rows, before, [{}, *found.rows], strict=False)
    rows = list(chain.from_iterable([*_skips(row, scales, last), row] for row, scales, last in pairs))
    skipped = [int("loss" not in row) for row in rows]
    found.rows = rows
    return found.run(source, LINES, MEANINGS, clocks([1] * len(rows), skipped))


def _skips(row: dict[str, Any], scales: list[float], last: dict[str, Any]) -> list[dict[str, Any]]:
    """The attempts at an update that overflowed: each set a new scale, and none moved the rate."""
    return [{"step": row["step"], "lr": last.get("lr"), "loss_scale": scale} for scale in scales]


def _values(match: re.Match[bytes]) -> dict[str, float]:
    """The numbers of a line, which are texts in either format."""
    if match["simple"] is not None:
        found: Any = dict(
            pair.rpartition(" ")[2].split("=", 1) for pair in match["simple"].decode().split(",") if "=" in pair
        )
    else:
        try:
            found = json.loads(match["json"])
        except ValueError:
            found = {}
    numbers = {name: number(str(text)) for name, text in found.items()}
    return {name: value for name, value in numbers.items() if value is not None}


FAIRSEQ = Importer("fairseq", LINES.declines, read)
