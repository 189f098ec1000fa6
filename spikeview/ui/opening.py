"""From a path to everything the window shows, away from the GUI thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spikeview.importers import open_run
from spikeview.rules.diagnosis import Diagnosis, diagnose
from spikeview.ui.panels import PANELS
from spikeview.ui.panels.panel import Plotted, plotted
from spikeview.ui.plot.scale import Steps


@dataclass(frozen=True, eq=False)
class Opened:
    """A diagnosed run, and for each of its views the series of every panel by id, None where it lacks them."""

    diagnosis: Diagnosis
    plots: tuple[Mapping[str, Plotted | None], ...]
    steps: tuple[Steps, ...]


def opened(diagnosis: Diagnosis) -> Opened:
    """The series are built here, so that the window only has to draw."""
    plots = tuple({panel.id: plotted(panel, view.run) for panel in PANELS} for view in diagnosis.views)
    return Opened(diagnosis, plots, tuple(Steps.of(view.run) for view in diagnosis.views))


def prepare(path: str) -> Opened:
    """Read, diagnose, and build the series. Raises what `open_run` and `diagnose` raise."""
    return opened(diagnose(open_run(path)))
