"""The rows whose batch held a sample, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.text import Text

from spikeview.commands.lines import Item, item
from spikeview.format import count as count_of
from spikeview.format import plural, shown, words
from spikeview.ranks import Ranks
from spikeview.rules.samples import Held
from spikeview.rules.wording import row_of

HEADS = ("rank", "row", "step", "loss", "executed", "place", "incident")
WIDTHS = (6, 10, 10, 12, 10, 7, 0)
MOST = 200
NAMED = 20


def held_items(ranks: Ranks, sample: str, found: Sequence[Held]) -> Iterator[Item]:
    """How many there are, then each with where it stands: the place in its batch, and the incident it lies in."""
    inside = sum(held.incident is not None for held in found)
    total = sum(len(run) for run in ranks.runs.values())
    head = f"sample {shown(sample)}: in {plural(len(found), 'row')} of {count_of(total)}"
    yield Text(), Text(head + (f", {count_of(inside)} of them in an incident" if found else ""), style="bold")
    if found:
        yield Text("  "), Text(_line(HEADS), style="dim")
    for held in found[:MOST]:
        yield Text("  "), Text(_line(_cells(held)), style="" if held.incident is None else "bold red")
    if len(found) > MOST:
        yield item("!", "yellow", f"{count_of(len(found) - MOST)} more: --json lists them all")


def shared_items(found: Mapping[Any, Sequence[int]], count: int) -> Iterator[Item]:
    """The samples that several incidents began with, those of the most incidents first."""
    yield Text(), Text(f"{plural(count, 'incident')} began with a batch whose samples are known", style="bold")
    if not found:
        yield item("-", "dim", "no sample is in two of these batches")
    for times, group in groupby(found, key=lambda sample: len(found[sample])):
        samples = list(group)
        named = ", ".join(shown(str(sample)) for sample in samples[:NAMED])
        more = f" and {count_of(len(samples) - NAMED)} more" if len(samples) > NAMED else ""
        yield item("*" if times == count else " ", "red", f"in {times} of {count}: {named}{more}")


def _cells(held: Held) -> Sequence[str]:
    run, at = held.run, held.position
    incident = "" if held.incident is None else f"{'begins' if held.begins else 'in'} {held.incident}"
    values = (words(run, name, at) for name in ("step", "loss", "executed"))
    return (str(run.rank), str(row_of(run, at)), *values, str(held.place), incident)


def _line(cells: Sequence[str]) -> str:
    return "".join(f"{cell:<{width}}" for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()
