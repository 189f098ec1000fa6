"""The dicts that a Hugging Face Trainer prints, `{'loss': 2.4977, ..., 'epoch': 0.05}`, among all else in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from spikeview.importers.huggingface import MEANINGS
from spikeview.importers.importer import Asked, Importer
from spikeview.importers.numbers import number
from spikeview.importers.source import Source
from spikeview.importers.text import Gathered, Lines, matches
from spikeview.run import Run

LINES = Lines(
    "a printed Hugging Face log",
    b"'epoch'",
    re.compile(rb"(?P<dict>\{'[^{}\n]*'epoch': [^{}\n]*\})|\| (?P<done>\d+)/(?P<total>\d+) \["),
)
DICT = re.compile(rb"\{(?:'[^{}\n]*, )?'loss': [^{}\n]*'epoch': [^{}\n]*\}")
_PAIR = re.compile(r"'([^']+)': ('[^']*'|[^,}]+)")
_NAMES = {each.name: column for column, each in MEANINGS.items()}


def declines(source: Source) -> str | None:
    """None for a text with dicts of a loss and an epoch."""
    return None if source.finds(LINES.mark, DICT) else "no line of its kind"


def read(source: Source, asked: Asked) -> Run:
    """One row a dict with a loss. A dict tells no step; the bar of progress that is drawn anew below it does."""
    found = Gathered()
    bars: list[tuple[int, int, int]] = []
    for match in matches(LINES, source, asked, found):
        if match["dict"] is None:
            bars.append((len(found.rows), int(match["done"]), int(match["total"])))
            continue
        values = dict(_values(match["dict"].decode("utf-8", "replace")))
        if "loss" in values:
            found.row(**{_NAMES.get(name) or f"user_{name}": value for name, value in values.items()})
        elif "eval_loss" in values:
            found.event("validation", loss=values.pop("eval_loss"), **values)
        else:
            found.event("metrics", **values)
    steps = _steps(len(found.rows), bars)
    if steps is None:
        found.notes.append("no step is printed: rows are counted instead")
    return found.run(source, LINES, MEANINGS, {} if steps is None else {"step": steps})


def _values(text: str) -> Iterator[tuple[str, float]]:
    for name, value in _PAIR.findall(text):
        if (parsed := number(value)) is not None:
            yield name, parsed


def _steps(rows: int, bars: Sequence[tuple[int, int, int]]) -> list[int] | None:
    """What the bar of the training, the longest one, stood at after each row; None where that makes no sense."""
    longest = max((total for _, _, total in bars), default=0)
    after: dict[int, int] = {}
    for row, done, total in bars:
        if total == longest and row > 0:
            after.setdefault(row, done)
    steps = [after.get(row) for row in range(1, rows + 1)]
    known = [step for step in steps if step is not None]
    apart = np.diff(known)
    regular = len(known) == rows and (rows < 2 or bool((apart > 0).all() and np.mean(apart == np.median(apart)) > 0.9))
    return known if regular else None


PRINTED = Importer("printed Hugging Face dicts", declines, read)
