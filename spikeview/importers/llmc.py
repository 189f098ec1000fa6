"""llm.c: the file `main.log` (`s:N trl:L lr:R norm:G`), and what the program prints (`step N/M | loss L ...`)."""

from __future__ import annotations

import re

from spikeview.importers.importer import Asked, Importer
from spikeview.importers.source import Source
from spikeview.importers.text import NUMBER, PREFIX, Gathered, Lines, floats, matches
from spikeview.meaning import ALL_RANKS, BEFORE, STEP, Meaning
from spikeview.run import Run

LINES = Lines(
    "an llm.c log",
    b"s",
    re.compile(
        rb"(?mi)^" + PREFIX + rb"(?:s:(?P<step>\d+) (?:trl:(?P<loss>" + NUMBER + rb")(?: lr:(?P<lr>" + NUMBER + rb"))?"
        rb"(?: norm:(?P<norm>" + NUMBER + rb"))?|tel:(?P<val>" + NUMBER + rb")|eval:(?P<eval>" + NUMBER + rb"))"
        rb"|step +(?P<printed>\d+)/\d+ \| (?:train )?loss (?P<printed_loss>" + NUMBER + rb")[^|\n]*"
        rb"\| norm (?P<printed_norm>" + NUMBER + rb")[^|\n]*\| lr (?P<printed_lr>" + NUMBER + rb"))"
    ),
)

MEANINGS = {
    "loss": Meaning("loss", STEP, BEFORE, ALL_RANKS),
    "grad_norm": Meaning("norm", STEP, BEFORE, ALL_RANKS, clipping=BEFORE),
    "lr": Meaning("lr", STEP, BEFORE),
}


def read(source: Source, asked: Asked) -> Run:
    """One row a line with a training loss; validation losses and HellaSwag accuracies are events.

    Steps are as they stand: the terminal counts them from 1, the file from 0.
    """
    found = Gathered()
    for match in matches(LINES, source, asked, found):
        if match["printed"] is not None:
            loss, lr, norm = floats(match, "printed_loss", "printed_lr", "printed_norm")
            found.row(step=int(match["printed"]), loss=loss, lr=lr, grad_norm=norm)
            continue
        step = int(match["step"])
        loss, lr, norm, val, accuracy = floats(match, "loss", "lr", "norm", "val", "eval")
        if match["loss"] is not None:
            found.row(step=step, loss=loss, lr=lr, grad_norm=norm)
        elif match["val"] is not None:
            found.event("validation", step=step, loss=val)
        else:
            found.event("metrics", step=step, hellaswag=accuracy)
    return found.run(source, LINES, MEANINGS)


LLM_C = Importer("llm.c", LINES.declines, read)
