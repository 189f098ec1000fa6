"""The pyramids over the lines of several panels at once: of a long run each column is read once, stretch by stretch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spikeview.analysis.envelope import BLOCK, Blocks, Pyramid, blocks, build, first_blocks, over
from spikeview.run import Run
from spikeview.ui.panels.behind import Behind, Column, same_cells
from spikeview.ui.panels.panel import ByRow, Curve, Series
from spikeview.ui.stretches import in_stretches, is_long


@dataclass(frozen=True, eq=False)
class Line:
    """What of a panel is drawn: as which `part`, what reads it, for which axis, and its pyramid of an earlier reading.

    `curve` is the curve that it is, None for a limit or a strip.
    """

    part: str
    read: Callable[[Run], Series]
    positive: bool
    known: Pyramid | None = None
    curve: Curve | None = None


def pyramids_of(run: Run, lines: Sequence[Line]) -> list[Pyramid]:
    """One for each line."""
    long = is_long(run)
    by_row = [line for line in lines if long and isinstance(line.read, ByRow)]
    streamed = iter(_streamed(run, by_row))
    return [next(streamed) if line in by_row else _built(run, line) for line in lines]


def _built(run: Run, line: Line) -> Pyramid:
    known = line.known if line.known is None or not isinstance(line.known.values, Column) else None
    return build(*line.read(run), positive=line.positive, known=known)


def _streamed(run: Run, lines: Sequence[Line]) -> list[Pyramid]:
    if not lines:
        return []
    same = min(_unchanged(run, line) for line in lines) // BLOCK

    def made(first: int, rows: Run) -> list[Blocks]:
        return [blocks(*line.read(rows), line.positive) for line in lines]

    columns = [name for line in lines if isinstance(line.read, ByRow) for name in line.read.columns]
    stretches = in_stretches(run, columns, made, same * BLOCK)
    pyramids = []
    for at, line in enumerate(lines):
        assert isinstance(line.read, ByRow)
        known = line.known
        before = [] if known is None else [first_blocks(known, same)]
        earlier = known.values.behind if known is not None and isinstance(known.values, Column) else None
        behind = Behind(run, line.read, earlier)
        later = [each[at] for each in stretches]
        pyramids.append(over(Column(behind, 0), Column(behind, 1), [*before, *later], line.positive))
    return pyramids


def _unchanged(run: Run, line: Line) -> int:
    """How many of the first rows are in the pyramid of an earlier reading as they are now."""
    known = line.known
    if known is None or known.positive != line.positive or not isinstance(known.values, Column):
        return 0
    assert isinstance(line.read, ByRow)
    return same_cells(line.read, run, known.values.behind.run)
