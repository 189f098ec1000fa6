"""A few rows of a long run as a run of their own: what is asked of one row costs nothing for all the others."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from recorder.store.lazy_table import in_memory
from spikeview.analysis.baseline import Baseline
from spikeview.rules.diagnosis import View
from spikeview.run import Run

BLOCK = 64
KEPT = 4


@dataclass(frozen=True, eq=False)
class Block:
    """Rows from `first` on, as a view of their own, and what was made of their cells: asked for again and again."""

    first: int
    baselines: Mapping[str, Baseline]
    view: View
    made: dict[Hashable, Any] = field(default_factory=dict)


# of each run the blocks that were made last: those about the cursor, and about the mouse
_BLOCKS: WeakKeyDictionary[Run, dict[int, Block]] = WeakKeyDictionary()


def rows_of(run: Run, first: int, last: int) -> Run:
    """The rows from first to last."""
    return Run(run.path, in_memory(run.table.slice(first, last - first + 1)), run.manifest, rank=run.rank)


def near(view: View, position: int) -> tuple[View, int]:
    """The block of rows that holds a position, with their baselines, and where in it the row stands."""
    block = block_of(view, position)
    return block.view, position - block.first


def block_of(view: View, position: int) -> Block:
    """The block of rows that holds a position."""
    first = position // BLOCK * BLOCK
    known = _BLOCKS.setdefault(view.run, {})
    block = known.get(first)
    if block is None or block.baselines is not view.baselines:
        rows = slice(first, first + BLOCK)
        baselines = {name: baseline.part(rows) for name, baseline in view.baselines.items()}
        rows_near = View(view.optimizer, rows_of(view.run, first, first + BLOCK - 1), baselines)
        if len(known) >= KEPT:
            del known[next(iter(known))]
        block = known[first] = Block(first, view.baselines, rows_near)
    return block
