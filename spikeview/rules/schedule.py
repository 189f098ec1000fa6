"""The scheduler's clock against the optimizer's."""

from __future__ import annotations

import numpy as np

from spikeview.analysis.clocks import perhaps_executed
from spikeview.rules.finding import Outcome
from spikeview.rules.verdict import Answer, passed, unknown
from spikeview.rules.wording import name_rows
from spikeview.run import Run

METRIC_DRIVEN = "ReduceLROnPlateau"


def schedule_drift(run: Run) -> Answer:
    """A scheduler that counts steps moved on rows where nothing executed.

    An epoch's scheduler moves on few rows and a metric's on none in particular: their clocks are not the steps'.
    """
    scheduled, recorded = run.values("scheduled"), run.recorded("scheduled")
    if not recorded.any():
        told = "scheduled" in run and "optimizers" in run.manifest
        return Answer(Outcome.NOT_APPLICABLE, "no scheduler") if told else unknown("scheduled")
    known = recorded & run.recorded("executed")
    if not known.any():
        return unknown("executed")
    executed = run.values("executed")
    kinds = _schedulers(run)
    if METRIC_DRIVEN in kinds:
        return Answer(Outcome.NOT_APPLICABLE, f"{METRIC_DRIVEN} follows a metric, not the steps")
    moves = known & run.made("schedule.moved", lambda run: run.values("scheduled") > 0)
    if 2 * np.count_nonzero(moves) < np.count_nonzero(known & executed):
        return Answer(
            Outcome.NOT_APPLICABLE, f"the scheduler moved on {np.count_nonzero(moves):,} rows: it does not count steps"
        )
    ahead = np.flatnonzero(moves & ~executed)
    counts = f"scheduled {int(scheduled.sum(where=known)):,}, executed {np.count_nonzero(known & executed):,}"
    if not len(ahead):
        return passed(run, counts, "executed", perhaps_executed(run) & recorded & (scheduled > 0))
    drift = int(scheduled[ahead].sum())
    return Answer(
        Outcome.FAILED,
        f"drift {drift:,} ({counts}): it moved on {name_rows(run, ahead)}, where nothing executed",
        ahead,
    )


def _schedulers(run: Run) -> set[str]:
    optimizers = run.manifest.get("optimizers")
    if not isinstance(optimizers, dict):
        return set()
    entries = [optimizers[name] for name in run.optimizers if isinstance(optimizers.get(name), dict)]
    return {str(entry["scheduler"].get("class")) for entry in entries if isinstance(entry.get("scheduler"), dict)}
