"""The pyramids over the lines of several panels at once: of a long run each column is read once, stretch by stretch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spikeview.analysis.pyramid import BLOCK, Blocks, Pyramid, blocks, build, first_blocks, over
from spikeview.run import Run
from spikeview.ui.panels.behind import Behind, Column, same_cells
from spikeview.ui.panels.panel import ByRow, Curve, Series
from spikeview.ui.stretches import Job, is_long, together


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


def unchanged(run: Run, lines: Sequence[Line]) -> int:
    """From which row on all lines have to be read: before it, every one has its pyramid of an earlier reading."""
    return min((_unchanged(run, line) for line in lines if _is_streamed(run, line)), default=len(run))


def whole_blocks(run: Run, rows: int) -> int:
    """How many of the first rows need not be read again where so many are as they were: of a short run none."""
    return rows // BLOCK * BLOCK if is_long(run) else 0


def pyramids_of(run: Run, lines: Sequence[Line], first: int) -> Job[list[Pyramid]]:
    """One for each line, of which the rows from `first` on are read: a whole number of blocks."""
    streamed = [_blocks_of(run, line, first) for line in lines if _is_streamed(run, line)]

    def join(found: list[Pyramid]) -> list[Pyramid]:
        made = iter(found)
        return [next(made) if _is_streamed(run, line) else _built(run, line) for line in lines]

    return together(streamed, join)


def _is_streamed(run: Run, line: Line) -> bool:
    return is_long(run) and isinstance(line.read, ByRow)


def _built(run: Run, line: Line) -> Pyramid:
    known = line.known if line.known is None or not isinstance(line.known.values, Column) else None
    return build(*line.read(run), positive=line.positive, known=known)


def _blocks_of(run: Run, line: Line, first: int) -> Job[Pyramid]:
    read, known = line.read, line.known
    assert isinstance(read, ByRow)
    before = [] if known is None or not first else [first_blocks(known, first // BLOCK)]
    earlier = known.values.behind if known is not None and isinstance(known.values, Column) else None

    def make(begin: int, rows: Run) -> Blocks:
        return blocks(*read(rows), line.positive)

    def join(made: list[Blocks]) -> Pyramid:
        behind = Behind(run, read, earlier)
        return over(Column(behind, 0), Column(behind, 1), [*before, *made], line.positive)

    return Job(read.columns, make, join)


def _unchanged(run: Run, line: Line) -> int:
    """How many of the first rows are in the pyramid of an earlier reading as they are now."""
    known = line.known
    if known is None or known.positive != line.positive or not isinstance(known.values, Column):
        return 0
    assert isinstance(line.read, ByRow)
    return same_cells(line.read, run, known.values.behind.run)
