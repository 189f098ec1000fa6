"""Which rows are steps: those with an attempt, micro-steps before the last, and what belongs to which segment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recorder.schema import Mask
from spikeview.analysis.clocks import declined
from spikeview.run import Run, row_by_row


@row_by_row
def idle(run: Run) -> Mask:
    """[rows]: without an attempt, save those declined for what loss or gradient held."""
    return run.recorded("attempted") & ~run.values("attempted").astype(np.bool_) & ~declined(run)


def micro_steps(run: Run) -> Mask:
    """[rows]: no attempt was due yet: declared so, or the next row goes on with the same step.

    Where an exception of the loop's ended a row the next one has the same step, since none was attempted.
    """
    declared = run.equals("skip_reason", "accumulating")
    follows = np.zeros(len(run), dtype=np.bool_)
    if run.recorded("step").all():
        follows[:-1] = (np.diff(run.values("step")) == 0) & (np.diff(segments(run)) == 0)
    micro: Mask = idle(run) & (declared | (follows & ~run.recorded("skip_reason") & ~_interrupted(run)))
    return micro


def _interrupted(run: Run) -> Mask:
    """[rows]: ended by an exception, as the recorder notes it."""
    rows = [event.get("row") for event in run.events if event.get("kind") == "exception"]
    ended: Mask = np.isin(run.values("row"), [row for row in rows if isinstance(row, int)])
    return ended


def segments(run: Run) -> NDArray[np.int64]:
    """[rows]: the segment of each; 0 where none were recorded."""
    return (
        run.values("segment").astype(np.int64, copy=False) if "segment" in run else np.zeros(len(run), dtype=np.int64)
    )


def optimizer_settings(run: Run) -> Mapping[str, Any]:
    """What the manifest holds of the optimizer of these rows; empty where it holds nothing."""
    entries = run.manifest.get("optimizers")
    if not isinstance(entries, Mapping):
        return {}
    found = [entries.get(name) for name in run.optimizers]
    return next((entry for entry in found if isinstance(entry, Mapping)), {})
