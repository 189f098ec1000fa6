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
from spikeview.ui.panels.plotted import Plotted, all_plotted, hold, plotted
from spikeview.ui.places import NONE, positions_of, segment_starts, skipped_rows
from spikeview.ui.plot.scale import Steps
from spikeview.ui.stretches import is_long

Plots = dict[str, Plotted | None]


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
    def of(cls, run: Run, earlier: tuple[Run, Rows] | None = None) -> Rows:
        """`earlier` is an earlier reading of the run, and what was made of it."""
        same = 0 if earlier is None else run.unchanged_since(earlier[0])
        skipped, resumes = (NONE, NONE) if earlier is None else (earlier[1].skipped, earlier[1].resumes)
        reasons = {panel.id: panel.reason(run) for panel in PANELS}
        saved = positions_of(run, [event for event in run.events if event.get("kind") == "checkpoint"])
        return cls(
            Steps.of(run),
            skipped_rows(run, skipped, same),
            reasons,
            layers_of(run),
            captures_of(run),
            segment_starts(run, resumes, same),
            np.unique(np.array(saved, dtype=np.int64)),
        )


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

    def build(self, wanted: Collection[str], view: int) -> None:
        """Build the series of these panels; of a long run the cells behind them are not held yet."""
        known = self.known[view] if view < len(self.known) else {}
        panels = [panel for panel in PANELS if panel.id in wanted]
        self.plots[view].update(all_plotted(panels, self.diagnosis.views[view].run, known))

    def hold(self) -> None:
        """Read the cells behind the curves, away from the GUI thread: from then on it reads none."""
        for plots in self.plots:
            for made in list(plots.values()):
                hold(made)
        if is_long(self.diagnosis.run):
            pa.default_memory_pool().release_unused()  # what the columns were decoded in

    def plot(self, panel_id: str, view: int) -> Plotted | None:
        """Build the series of a panel, from those of an earlier reading where there were any."""
        panel = next(each for each in PANELS if each.id == panel_id)
        known = self.known[view].get(panel_id) if view < len(self.known) else None
        return plotted(panel, self.diagnosis.views[view].run, known)
