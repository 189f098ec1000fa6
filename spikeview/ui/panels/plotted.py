"""The series of a panel, built from a run away from the GUI thread and ready to draw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from spikeview.analysis.extremes import DRAWN
from spikeview.analysis.pyramid import Pyramid
from spikeview.run import Run
from spikeview.ui.panels.behind import Column
from spikeview.ui.panels.panel import Cells, Curve, CurvePanel, HeatPanel, Panel, column, has_values
from spikeview.ui.panels.pyramids import Line, pyramids_of, unchanged, whole_blocks
from spikeview.ui.stretches import Job, found_in, together

WIDE = 100.0


@dataclass(frozen=True, eq=False)
class Curves:
    """The curves of a panel as they are `drawn` and as pyramids, its limit, and its strip."""

    log: bool
    drawn: tuple[Curve, ...]
    curves: tuple[Pyramid, ...]
    limit: Pyramid | None
    strip: Pyramid | None

    @cached_property
    def seen(self) -> int:
        """The flags of all cells of the curves."""
        return int(np.bitwise_or.reduce([np.bitwise_or.reduce(curve.flags, initial=0) for curve in self.curves]))


Plotted = Curves | Cells


@dataclass(frozen=True, eq=False)
class Drawing:
    """What is to be drawn of some panels: the lines of each that has any.

    `log` is the axis of another run beside which they are drawn; None lets each panel decide.
    """

    run: Run
    panels: tuple[Panel, ...]
    lines: tuple[tuple[CurvePanel, list[Line]], ...]
    log: bool | None

    @classmethod
    def of(
        cls, panels: Iterable[Panel], run: Run, known: Mapping[str, Plotted | None], log: bool | None = None
    ) -> Drawing:
        """`known` is what was drawn of an earlier reading of the run: what did not change of it is not built again."""
        asked = tuple(panels)
        there = [panel for panel in asked if isinstance(panel, CurvePanel) and not panel.reason(run)]
        return cls(run, asked, tuple((each, _lines(each, run, known.get(each.id), log)) for each in there), log)

    @property
    def unchanged(self) -> int:
        """From which row on there is something to read."""
        return unchanged(self.run, [line for _, lines in self.lines for line in lines])

    def job(self, first: int) -> Job[dict[str, Plotted | None]]:
        """The series of all panels by their ids, None where the run lacks what one needs."""

        def join(found: list[list[Pyramid]]) -> dict[str, Plotted | None]:
            made: dict[str, Plotted | None] = dict.fromkeys(panel.id for panel in self.panels)
            for (panel, lines), pyramids in zip(self.lines, found, strict=True):
                made[panel.id] = _curves(panel, list(zip(lines, pyramids, strict=True)), self.log)
            for heat in self.panels:
                if isinstance(heat, HeatPanel) and not heat.reason(self.run):
                    made[heat.id] = heat.read(self.run)
            return made

        return together([pyramids_of(self.run, lines, first) for _, lines in self.lines], join)


def plotted(panel: Panel, run: Run, known: Plotted | None = None, log: bool | None = None) -> Plotted | None:
    """The series of a panel, as `Drawing`; the cells behind its curves are held. Raises what reading the run raises."""
    drawing = Drawing.of([panel], run, {panel.id: known}, log)
    first = whole_blocks(run, drawing.unchanged)
    made = found_in(run, drawing.job(first), first)[panel.id]
    hold(run, [made])
    return made


def hold(run: Run, several: Iterable[Plotted | None]) -> None:
    """Read the cells behind the curves, so that none is read in the GUI thread."""
    curves = [made for made in several if isinstance(made, Curves)]
    pyramids = [each for made in curves for each in (*made.curves, made.limit, made.strip) if each is not None]
    cells = [each.values.behind for each in pyramids if isinstance(each.values, Column)]
    run.fetch(name for each in cells for name in each.kept)
    for each in cells:
        each.hold()


def _lines(panel: CurvePanel, run: Run, known: Plotted | None, log: bool | None) -> list[Line]:
    """What is to be drawn: the curves, then the limit, then the strip."""
    drawn = (*panel.curves, *panel.more(run))
    before = known if isinstance(known, Curves) and len(known.drawn) == len(drawn) else None
    given = panel.scale == "log" if log is None else log
    lines = []
    for at, curve in enumerate(drawn):
        earlier = None if before is None else before.curves[at]
        if earlier is not None and log is None:  # a panel that chose the log axis has nothing that is not positive
            earlier = replace(earlier, positive=given)
        lines.append(Line("curve", curve.read, given, earlier, curve))
    for part, name, positive in (("limit", panel.limit, given), ("strip", panel.strip, False)):
        if name is not None and has_values(run, name):
            lines.append(Line(part, column(name), positive, None if before is None else getattr(before, part)))
    return lines


def _curves(panel: CurvePanel, built: Sequence[tuple[Line, Pyramid]], log: bool | None) -> Curves:
    given = panel.scale == "log" if log is None else log
    curves = [pyramid for line, pyramid in built if line.part == "curve"]
    if log is None and panel.scale == "auto":
        given = all(_is_wide(each) for each in curves)  # then nothing is zero or below: the same on either axis
        curves = [replace(each, positive=given) for each in curves]
    parts = {line.part: pyramid for line, pyramid in built if line.part != "curve"}
    drawn = tuple(line.curve for line, _ in built if line.curve is not None)
    return Curves(given, drawn, tuple(curves), parts.get("limit"), parts.get("strip"))


def _is_wide(pyramid: Pyramid) -> bool:
    """All positive, and the largest far over what is usual: the median of the largest of each block."""
    held = (pyramid.flags & DRAWN) != 0
    if not held.any() or pyramid.low[held].min() <= 0:
        return False
    few = len(pyramid) < 64 * WIDE
    values, kinds = (pyramid.values[:], pyramid.kinds[:]) if few else (pyramid.high, ~held)
    ordered = np.sort(values[kinds == 0])  # not by np.median, which brings in masked arrays
    usual = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return bool(pyramid.high[held].max() / WIDE > usual)
