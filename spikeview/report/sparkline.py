"""Figures for plain text: a few signals as one line of blocks each, bad rows as marks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from spikeview.format import label, number
from spikeview.report.series import drawable, finite, marks
from spikeview.run import Floats, Run

BLOCKS = "▁▂▃▄▅▆▇█"
MARKS = {"nan": "◆", "inf": "▲", "skipped": "×"}
COLUMNS = 72
DRAWN = {"loss": np.fmax, "grad_norm": np.fmax, "update_ratio": np.fmax, "update_cosine": np.fmin}


def sparklines(run: Run, start: int, stop: int) -> list[dict[str, Any]]:
    """Rows [start, stop) of each recorded signal; `text` has one character a row, or for the most extreme of several.

    Logarithmic where a positive signal spans more than three decades. A column with a bad row shows its mark.
    """
    drawn = []
    for name, extreme in DRAWN.items():
        values = finite(run, name)[start:stop]
        flagged = {kind: mask[start:stop] for kind, mask in marks(run, name).items()}
        if np.isnan(values).all() and not (flagged["nan"] | flagged["inf"]).any():
            continue
        edges = np.linspace(0, len(values), min(len(values), COLUMNS) + 1).astype(int)
        groups = list(pairwise(edges))
        line, log = _blocks(np.array([extreme.reduce(values[a:b]) for a, b in groups]))
        for kind in ("skipped", "inf", "nan"):
            if kind == "skipped" and not name.startswith("update_"):
                continue
            for at, (a, b) in enumerate(groups):
                if flagged[kind][a:b].any():
                    line[at] = MARKS[kind]
        known = values[~np.isnan(values)]
        span = f"{number(known.min())} to {number(known.max())}" if len(known) else "no finite value"
        drawn.append({"signal": name, "label": label(name), "text": "".join(line), "span": span, "log": log})
    return drawn


def _blocks(values: Floats) -> tuple[list[str], bool]:
    values = drawable(values)
    known = values[~np.isnan(values)]
    if not len(known):
        return [" "] * len(values), False
    low, high = float(known.min()), float(known.max())
    log = low > 0 and high / low > 1e3
    if log:
        values, low, high = np.log(values), float(np.log(low)), float(np.log(high))
    scaled = (values - low) / (high - low) if high > low else np.where(np.isnan(values), np.nan, 0.5)
    return [" " if np.isnan(part) else BLOCKS[round(part * (len(BLOCKS) - 1))] for part in scaled], log
