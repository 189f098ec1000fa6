"""PANELS: what the window plots, from top to bottom. One file a panel, one name here."""

from __future__ import annotations

from spikeview.ui.panels.alignment import ALIGNMENT
from spikeview.ui.panels.clocks import CLOCKS
from spikeview.ui.panels.grad_norm import GRAD_NORM
from spikeview.ui.panels.loss import LOSS
from spikeview.ui.panels.panel import Panel

PANELS: tuple[Panel, ...] = (LOSS, GRAD_NORM, CLOCKS, ALIGNMENT)
