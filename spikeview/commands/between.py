"""What several runs share, and what stands in one alone, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spikeview.commands.lines import Item, heading, item
from spikeview.format import plural, shown
from spikeview.rules.between import STEP, Alone, Between, Shared, Spike

MOST = 10


def between_items(found: Between) -> Iterator[Item]:
    """The first MOST of what is shared and of what is not, and how many more there are."""
    yield heading("Between the runs")
    yield from _first([item("*", "red", shared_text(group)) for group in alike(found.shared)], "shared onset")
    yield from _first([item("-", "", alone_text(each)) for each in found.alone], "onset in one run alone")
    if not (found.shared or found.alone):
        yield item("+", "dim", "no incident in any of them", "dim")


def alike(shared: Sequence[Shared]) -> list[list[Shared]]:
    """Those of a step without batches, in the same runs, together; each of the others by itself."""

    def key(each: Shared) -> tuple[object, ...]:
        runs = tuple(onset.run for onset in each.onsets)
        return (each.by, runs) if each.by == STEP else (each.by, runs, each.onsets[0].step, each.onsets[0].batch)

    groups: dict[tuple[object, ...], list[Shared]] = {}
    for each in shared:
        groups.setdefault(key(each), []).append(each)
    return list(groups.values())


def shared_text(group: Sequence[Shared]) -> str:
    """`batch 37 in a (step 37) and b (step 97): ...`; of several steps `steps 919, 947 and 1760 in a and b: ...`."""
    shared, first = group[0], group[0].onsets[0]
    if len(group) > 1:
        steps = [str(each.onsets[0].step) for each in group]
        return f"steps {listed(steps)} in {listed([shown(each.run) for each in shared.onsets])}: {shared.look}"
    what = f"batch {shown(str(first.batch))}" if shared.by == "batch" else f"step {first.step}"
    where = [f"{shown(each.run)} ({_place(each, shared.by)})" for each in shared.onsets]
    return f"{what} in {listed(where)}: {shared.look}"


def alone_text(alone: Alone) -> str:
    """`step 44 in a only; no incident there in b: look at the state of a`."""
    onset = alone.onset
    what = f"row {onset.row}" if onset.step is None else f"step {onset.step}"
    batch = "" if onset.batch is None else f", batch {shown(onset.batch)},"
    here = f"{what}{batch} in {shown(onset.run)} only"
    if not alone.ordinary:
        return f"{here}; no other has that step"
    return f"{here}; no incident there in {listed([shown(run) for run in alone.ordinary])}: look at what differs"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _place(onset: Spike, by: str) -> str:
    if by == "batch":
        return f"row {onset.row}" if onset.step is None else f"step {onset.step}"
    return f"row {onset.row}" if onset.batch is None else f"batch {shown(onset.batch)}"


def _first(items: Sequence[Item], noun: str) -> Iterator[Item]:
    yield from items[:MOST]
    if len(items) > MOST:
        yield item(" ", "", f"and {plural(len(items) - MOST, f'further {noun}')}", "dim")
