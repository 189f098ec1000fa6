"""What each parameter did on the deep rows: heatmaps of parameters over rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spikeview.rules.diagnosis import View
from spikeview.run import Run
from spikeview.ui.layer_table import layers_of, shares_of
from spikeview.ui.panels.panel import Cells, HeatPanel
from spikeview.ui.places import positions_of
from spikeview.ui.spans import Span

CLICK = "brighter is more. A click on a parameter shows its curve, another click all of them again."


def cells(measure: str, share: bool) -> Callable[[Run], Cells]:
    """A reader of one measure of the layers table; a `share` is that of the squared norm of its row."""

    def read(run: Run) -> Cells:
        layers = layers_of(run)
        assert layers is not None
        numbers, at = np.unique(layers.rows, return_inverse=True)
        positions = np.array(positions_of(run, [{"row": number} for number in numbers.tolist()]), dtype=np.int64)
        values = np.full((len(layers.names), len(numbers)), np.nan)
        values[layers.name, at] = layers.measures[measure]
        told = ~np.isnan(values).all(axis=0)
        values = values[:, told]
        return Cells(layers.names, positions[told], shares_of(values) if share else values)

    return read


def lacks(measure: str) -> Callable[[Run], str]:
    """Whether a run has deep rows with this measure."""

    def told(run: Run) -> str:
        layers = layers_of(run)
        return "" if layers is not None and measure in layers.measures else f"not recorded: {measure} of parameters"

    return told


def nothing(view: View, position: int) -> Sequence[Span]:
    """The widget of a heatmap says more: it knows which cell the mouse is on."""
    return []


LAYER_SHARES = HeatPanel(
    id="layer_shares",
    title="Layers: share of the gradient",
    help=f"For each deep row the share of the squared gradient norm that every parameter carried; {CLICK}",
    lacks=lacks("grad_norm"),
    head=nothing,
    read=cells("grad_norm", share=True),
    weight=9,
)

LAYER_RATIOS = HeatPanel(
    id="layer_ratios",
    title="Layers: update ratio",
    help=f"For each deep row the norm of every parameter's update over its own; {CLICK}",
    lacks=lacks("update_ratio"),
    head=nothing,
    read=cells("update_ratio", share=False),
    weight=9,
)
