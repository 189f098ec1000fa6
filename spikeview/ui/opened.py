"""A run that is ready to be shown: its diagnosis, what its panels share, and the series that were built of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from spikeview.analysis.envelope import Positions
from spikeview.rules.diagnosis import Diagnosis
from spikeview.run import Run
from spikeview.ui.captures import captures_of
from spikeview.ui.layer_table import Layers, layers_of
from spikeview.ui.panels import PANELS
from spikeview.ui.panels.plotted import Drawing, Plotted, hold, plotted
from spikeview.ui.panels.pyramids import whole_blocks
from spikeview.ui.places import NONE, positions_of, segment_starts, skipped_rows
from spikeview.ui.plot.scale import Steps
from spikeview.ui.stretches import Job, found_in, is_long, together

Plots = dict[str, Plotted | None]
# What is asked of all rows at once, and by the diagnosis after that.
KEPT = ("step", "attempted", "executed")


@dataclass(frozen=True, eq=False)
class Rows:
    """What all panels of a view share: the step of every row, and the positions of the skipped ones, rising.

    `reasons` says by id why a panel has nothing to show, empty where it has; `layers` is None without deep rows.
    `captures` says by row number what was captured of it; `resumes` are the first rows of later segments, and
    `checkpoints` those after which one was written.
    """

    steps: Steps
    skipped: Positions
    reasons: Mapping[str, str]
    layers: Layers | None
    captures: Mapping[int, str]
    resumes: Positions
    checkpoints: Positions

    @classmethod
    def job(cls, run: Run, earlier: Rows | None = None, first: int = 0) -> Job[Rows]:
        """`earlier` is what was made of an earlier reading of the run, the rows before `first` being as they were."""

        def join(skipped: list[Positions]) -> Rows:
            reasons = {panel.id: panel.reason(run) for panel in PANELS}
            saved = positions_of(run, [event for event in run.events if event.get("kind") == "checkpoint"])
            saved_at = np.unique(np.array(saved, dtype=np.int64))
            layers, captures = layers_of(run), captures_of(run)
            return cls(Steps.of(run), skipped[0], reasons, layers, captures, segment_starts(run), saved_at)

        return together([skipped_rows(run, NONE if earlier is None else earlier.skipped, first)], join)


@dataclass(frozen=True, eq=False)
class Opened:
    """A run with its diagnosis, and for each of its views what is drawn of it.

    `plots` holds the series by panel id, None where the run lacks them; one that nobody asked for yet is absent.
    Until it is `diagnosed` the diagnosis only has views. `facts` is what the run says of itself.
    """

    diagnosis: Diagnosis
    rows: tuple[Rows, ...]
    plots: tuple[Plots, ...]
    facts: Sequence[tuple[str, str]]
    diagnosed: bool = True
    known: tuple[Plots, ...] = field(default=())

    def hold(self) -> None:
        """Read the cells behind the curves, away from the GUI thread: from then on it reads none."""
        for view, plots in zip(self.diagnosis.views, self.plots, strict=True):
            hold(view.run, list(plots.values()))
        if is_long(self.diagnosis.run):
            pa.default_memory_pool().release_unused()  # what the columns were decoded in

    def plot(self, panel_id: str, view: int) -> Plotted | None:
        """Build the series of a panel, from those of an earlier reading where there were any."""
        panel = next(each for each in PANELS if each.id == panel_id)
        known = self.known[view].get(panel_id) if view < len(self.known) else None
        return plotted(panel, self.diagnosis.views[view].run, known)


def view_of(
    run: Run, wanted: Collection[str], known: Plots, earlier: tuple[Run, Rows] | None = None
) -> tuple[Rows, Plots]:
    """What is shown of a view, with the series of the wanted panels: each row of a long run is read once.

    `known` are the series of an earlier reading, `earlier` that reading and what was made of it.
    """
    drawing = Drawing.of([panel for panel in PANELS if panel.id in wanted], run, known)
    same = 0 if earlier is None else run.unchanged_since(earlier[0])
    first = whole_blocks(run, min(same, drawing.unchanged))
    rows = Rows.job(run, None if earlier is None else earlier[1], first)
    found = found_in(run, together([rows, drawing.job(first)], tuple), first, KEPT)
    return found[0], found[1]
