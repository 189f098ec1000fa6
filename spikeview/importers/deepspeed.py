"""DeepSpeed: the counter line `step=S, skipped=K, lr=[...]`, and what is said of each overflow."""

from __future__ import annotations

import re
from collections.abc import Iterable

from spikeview.importers.deepspeed_steps import Counter, Told, by_step, by_window
from spikeview.importers.importer import Asked, Importer
from spikeview.importers.source import Source
from spikeview.importers.text import NUMBER, Gathered, Lines, matches
from spikeview.meaning import AFTER, ALL_RANKS, BEFORE, STEP, Meaning
from spikeview.run import Run

# Every rank prints of its own scaler, and that there was *no* overflow has the same words in it.
LINES = Lines(
    "a DeepSpeed log",
    b"skip",
    re.compile(
        rb"\bstep=(?P<step>\d+), skipped=(?P<skipped>\d+), lr=\[?(?P<lr>" + NUMBER + rb")"
        rb"|\bsteps: (?P<steps>\d+) loss: (?P<loss>" + NUMBER + rb") iter time"
        rb"|Grad overflow on iteration:? (?P<iteration>\d+)"
        rb"|(?i:overflow!|overflow detected\.)(?: Rank (?P<rank>\d+))? Skipping step\."
        rb"(?: Attempted loss scale: (?P<scale>" + NUMBER + rb"),(?: reducing to (?P<reduced>" + NUMBER + rb"))?)?"
        rb"|No Grad overflow for (?P<calm>\d+) iterations"
        rb"|Increasing dynamic loss scale from (?P<grown_from>" + NUMBER + rb") to (?P<grown>" + NUMBER + rb")"
    ),
)

MEANINGS = {
    "loss": Meaning("loss", STEP, BEFORE, ALL_RANKS),
    "lr": Meaning("lr", STEP, AFTER),
    "loss_scale": Meaning("Attempted loss scale", STEP, BEFORE),
}


def read(source: Source, asked: Asked) -> Run:
    """One row a step where every overflow is told with its number, else one row a counter line."""
    found = Gathered()
    told = _told(matches(LINES, source, asked, found))
    rows, clocks, meanings = (by_step if told.iterations else by_window)(told, found)
    found.rows = rows
    return found.run(source, LINES, MEANINGS | meanings, clocks)


def _told(lines: Iterable[re.Match[bytes]]) -> Told:
    """What the lines say, each thing once however many ranks say it."""
    told = Told()
    for match in lines:
        if match["step"] is not None:
            told.counters.append(
                Counter(int(match["step"]), int(match["skipped"]), float(match["lr"]), len(told.skips))
            )
        elif match["steps"] is not None:
            told.losses[int(match["steps"])] = float(match["loss"])
        elif match["iteration"] is not None:
            told.iterations.add(int(match["iteration"]))
        elif match["calm"] is not None:
            told.calm = int(match["calm"])
        elif match["grown"] is not None:
            told.growth(len(told.skips), float(match["grown"]))
        else:
            told.skip(match["rank"], match["scale"], match["reduced"])
    return told


DEEPSPEED = Importer("DeepSpeed", LINES.declines, read)
