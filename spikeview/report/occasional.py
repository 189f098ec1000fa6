"""Panels that are drawn around an incident only where they tell of it."""

from __future__ import annotations

import numpy as np

from spikeview.analysis.rates import rates
from spikeview.report.panels import PANELS, Line, Panel, column
from spikeview.report.series import finite
from spikeview.report.theme import LIGHT
from spikeview.rules.diagnosis import Diagnosed

HEIGHT = 0.95
SCALE = Panel(
    "scale",
    "Loss scale",
    "loss_scale",
    (Line("scale", "scale", LIGHT["coefficient"], column("loss_scale"), steps=True),),
    HEIGHT,
    scale="log",
    marks_skipped=True,
)
RATE = Panel(
    "rate", "Learning rate", "lr", (Line("rate", "rate", LIGHT["executed"], column("lr"), steps=True),), HEIGHT, "auto"
)
RATIO = Panel(
    "ratio",
    "Update ratio: size of the update by that of the parameters",
    "update_ratio",
    (Line("ratio", "ratio", LIGHT["scheduled"], column("update_ratio")),),
    HEIGHT,
    scale="log",
    marks_skipped=True,
)


def panels_for(diagnosed: Diagnosed, rows: slice) -> tuple[Panel, ...]:
    """The panels of every figure; and, between its clocks and its alignment, those that changed in these rows."""
    run, incident = diagnosed.view.run, diagnosed.incident
    scales = finite(run, "loss_scale")[rows]
    known = scales[np.isfinite(scales)]
    tells = {
        SCALE: len(known) > 0 and bool((known != known[0]).any()),
        RATE: rates(run).jump(incident.last) is not None,
        RATIO: "update_ratio" in incident.extent,
    }
    return (*PANELS[:-1], *(panel for panel, told in tells.items() if told), PANELS[-1])
