"""nanoGPT: `iter N: loss L` for every `log_interval` iterations, `step N:` for the estimated losses."""

from __future__ import annotations

import re

from spikeview.importers.importer import Asked, Importer
from spikeview.importers.source import Source
from spikeview.importers.text import NUMBER, PREFIX, Gathered, Lines, floats, matches
from spikeview.meaning import BEFORE, MICRO_STEP, ONE_RANK, Meaning
from spikeview.run import Run

LINES = Lines(
    "a nanoGPT log",
    b"iter ",
    re.compile(
        rb"(?mi)^"
        + PREFIX
        + rb"(?:iter (?P<iter>\d+): loss (?P<loss>"
        + NUMBER
        + rb"), time (?P<time>"
        + NUMBER
        + rb")ms"
        rb"(?:, mfu (?P<mfu>" + NUMBER + rb")%)?"
        rb"|step (?P<step>\d+): train loss (?P<train>" + NUMBER + rb"), val loss (?P<val>" + NUMBER + rb"))"
    ),
)

# The loss of the last micro-batch of the main process, times the number of micro-batches.
MEANINGS = {"loss": Meaning("loss", MICRO_STEP, BEFORE, ONE_RANK)}
NO_MFU = -100.0


def read(source: Source, asked: Asked) -> Run:
    """One row an `iter` line; `step` lines are validations."""
    found = Gathered()
    for match in matches(LINES, source, asked, found):
        if match["iter"] is not None:
            loss, time, mfu = floats(match, "loss", "time", "mfu")
            # it is printed as -100 % until it has been measured
            measured = None if mfu == NO_MFU else mfu
            found.row(step=int(match["iter"]), loss=loss, user_time_ms=time, user_mfu_percent=measured)
        else:
            train, val = floats(match, "train", "val")
            found.event("validation", step=int(match["step"]), loss=val, train_loss=train)
    return found.run(source, LINES, MEANINGS)


NANOGPT = Importer("nanoGPT", LINES.declines, read)
