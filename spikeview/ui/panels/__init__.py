"""PANELS: what the window plots, from top to bottom. One file a panel, one name here."""

from __future__ import annotations

from spikeview.ui.panels.alignment import ALIGNMENT
from spikeview.ui.panels.clip_frequency import CLIP_FREQUENCY
from spikeview.ui.panels.clocks import CLOCKS
from spikeview.ui.panels.grad_norm import GRAD_NORM
from spikeview.ui.panels.layers import LAYER_RATIOS, LAYER_SHARES
from spikeview.ui.panels.learning_rate import LEARNING_RATE
from spikeview.ui.panels.loss import LOSS
from spikeview.ui.panels.loss_scale import LOSS_SCALE
from spikeview.ui.panels.panel import Panel
from spikeview.ui.panels.rank_spread import RANK_SPREAD
from spikeview.ui.panels.step_time import STEP_TIME
from spikeview.ui.panels.update import UPDATE_NORMS, UPDATE_RATIO
from spikeview.ui.panels.validation import VALIDATION

PANELS: tuple[Panel, ...] = (
    LOSS,
    GRAD_NORM,
    CLOCKS,
    ALIGNMENT,
    UPDATE_RATIO,
    LOSS_SCALE,
    LEARNING_RATE,
    CLIP_FREQUENCY,
    VALIDATION,
    STEP_TIME,
    UPDATE_NORMS,
    LAYER_SHARES,
    LAYER_RATIOS,
    RANK_SPREAD,
)
