"""modded-nanogpt: `step:N/M train_loss:L` after the source code of the script, which may hold such lines as text."""

from __future__ import annotations

import re

from spikeview.importers.importer import Asked, Importer
from spikeview.importers.source import Source
from spikeview.importers.text import NUMBER, PREFIX, Gathered, Lines, floats, matches
from spikeview.meaning import BEFORE, MICRO_STEP, ONE_RANK, Meaning
from spikeview.run import Run

LINES = Lines(
    "a modded-nanogpt log",
    b"step:",
    re.compile(
        rb"(?mi)^" + PREFIX + rb"step:(?P<step>\d+)/\d+ "
        rb"(?:train_loss:(?P<loss>" + NUMBER + rb")|val_loss:(?P<val>" + NUMBER + rb"))"
        rb"(?: [a-z_]+:\S+)*? train_time:(?P<time>" + NUMBER + rb")ms step_avg:" + NUMBER + rb"ms"
    ),
)

# The last micro-batch of the main process: a mean over all would be slower. It is printed after its step, as step + 1.
MEANINGS = {"loss": Meaning("train_loss", MICRO_STEP, BEFORE, ONE_RANK)}


def read(source: Source, asked: Asked) -> Run:
    """One row a line with a training loss; lines with a validation loss are events."""
    found = Gathered()
    for match in matches(LINES, source, asked, found):
        loss, val, time = floats(match, "loss", "val", "time")
        if match["loss"] is not None:
            found.row(step=int(match["step"]), loss=loss, user_train_time_ms=time)
        else:
            found.event("validation", step=int(match["step"]), loss=val)
    return found.run(source, LINES, MEANINGS)


MODDED_NANOGPT = Importer("modded-nanogpt", LINES.declines, read)
