"""From what a DeepSpeed log says of overflows to rows with their clocks and scales."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spikeview.format import count, plural
from spikeview.importers.text import Gathered
from spikeview.importers.windows import clocks
from spikeview.meaning import STEP, Meaning, stride

Rows = tuple[list[dict[str, Any]], dict[str, list[Any]], dict[str, Meaning]]


@dataclass(frozen=True)
class Counter:
    """A counter line: after so many steps, so many of them skipped; `skips` messages of skips came before it."""

    step: int
    skipped: int
    lr: float
    skips: int


@dataclass
class Told:
    """Everything a log says, in order.

    `skips` holds of every message the scale of the attempt and the one after it (None: the scale stayed), `growths`
    what the scale became after so many skips. `calm` steps without an overflow let it grow.
    """

    counters: list[Counter] = field(default_factory=list)
    losses: dict[int, float] = field(default_factory=dict)
    iterations: set[int] = field(default_factory=set)
    skips: list[tuple[float | None, float | None]] = field(default_factory=list)
    growths: list[tuple[int, float]] = field(default_factory=list)
    calm: int = 0
    rank: bytes | None = None

    def skip(self, rank: bytes | None, scale: bytes | None, reduced: bytes | None) -> None:
        """A message of a skip; those of other ranks than the first are the same ones again."""
        if self.skips and rank != self.rank:
            return
        self.rank = rank
        self.skips.append((None if scale is None else float(scale), None if reduced is None else float(reduced)))

    def growth(self, after: int, scale: float) -> None:
        """A message that the scale grew, once for all ranks."""
        if (after, scale) not in self.growths:
            self.growths.append((after, scale))


def by_step(told: Told, found: Gathered) -> Rows:
    """One row a step, numbered from 0 as the overflow messages do."""
    skipped = sorted(told.iterations)
    window = stride([each.step for each in told.counters]) or 1
    first = min([skipped[0], *(max(0, each.step - window) for each in told.counters[:1])])
    last = max([skipped[-1] + 1, *(each.step for each in told.counters)])
    steps = range(first, last)
    rates = {each.step: each.lr for each in told.counters}  # set after that many steps: the next one runs under it
    scales = _scales(told, skipped, steps)
    rows = [
        {"step": step, "lr": rates.get(step), "loss_scale": scale, "loss": told.losses.get(step + 1)}
        for step, scale in zip(steps, scales, strict=True)
    ]
    columns = clocks([1] * len(rows), [int(step in told.iterations) for step in steps])
    unsure = _missing(told, skipped)
    if unsure:
        columns["executed"] = [
            None if step in unsure and ran else ran for step, ran in zip(steps, columns["executed"], strict=True)
        ]
        found.notes.append(
            f"the counter tells of more skips than the messages: {plural(len(unsure), 'step')} may be skipped too"
        )
    return rows, columns, {"lr": Meaning("lr", STEP)}


def by_window(told: Told, found: Gathered) -> Rows:
    """One row a counter line. Which of its steps were skipped is not told, only how many."""
    window = stride([each.step for each in told.counters]) or (told.counters[0].step if told.counters else 1)
    rows, skips, attempts = [], [], []
    before = Counter(0, 0, 0.0, 0)
    known: float | None = None
    for at, each in enumerate(told.counters):
        messages = told.skips[before.skips : each.skips]
        whole = each.step == window or at > 0
        skips.append(max(0, each.skipped - before.skipped) if whole else len(messages))
        attempts.append(max(each.step - before.step if at and each.step > before.step else window, skips[-1]))
        rows.append(
            {
                "step": each.step,
                "lr": each.lr,
                "loss_scale": messages[0][0] if messages else known,
                "loss": told.losses.get(each.step),
            }
        )
        known = (messages[-1][1] or messages[-1][0]) if messages else None
        before = each
    lost = sum(skips) - len(told.skips)
    if lost:
        found.notes.append(
            f"{count(sum(skips))} skips by the counter, {count(len(told.skips))} by messages: the counter is taken"
        )
    return rows, clocks(attempts, skips), {}


def _scales(told: Told, skipped: list[int], steps: range) -> list[float | None]:
    """The scale of every step, where each skip has told of it."""
    if len(told.skips) != len(skipped):
        return [None] * len(steps)
    scales: list[float | None] = [None] * len(steps)
    changes: list[tuple[int, float | None]] = []
    for number, (at, (scale, reduced)) in enumerate(zip(skipped, told.skips, strict=True)):
        changes.append((at, scale))
        changes.append((at + 1, reduced or scale))
        grown = [scale for after, scale in told.growths if after == number + 1]
        # the scaler counts its calm steps from the overflow on
        changes += [(at + 2 + told.calm * (turn + 1), scale) for turn, scale in enumerate(grown) if told.calm]
    for (at, value), (until, _) in zip(changes, [*changes[1:], (steps.stop, None)], strict=True):
        for step in range(max(at, steps.start), min(until, steps.stop)):
            scales[step - steps.start] = value
    return scales


def _missing(told: Told, skipped: list[int]) -> set[int]:
    """Steps between two counter lines that count more skips than messages tell of."""
    places = np.array(skipped)
    unsure: set[int] = set()
    before = Counter(0, 0, 0.0, 0)
    for each in told.counters:
        said = int(np.searchsorted(places, each.step) - np.searchsorted(places, before.step))
        if each.skipped - before.skipped > said and (before.step or each.skipped <= each.step):
            unsure |= set(range(before.step, each.step))
        before = each
    return unsure
