"""What a check on the whole run may look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spikeview.analysis.baseline import Baseline
from spikeview.analysis.incident import Incident
from spikeview.run import Run


@dataclass(frozen=True)
class Seen:
    """The rows of one optimizer, with its incidents and baselines, or of all; `ranks` are the runs of all ranks."""

    run: Run
    incidents: Sequence[Incident] = ()
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    ranks: Mapping[int, Run] = field(default_factory=dict)
