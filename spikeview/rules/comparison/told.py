"""A comparison as plain JSON values."""

from __future__ import annotations

from typing import Any

from spikeview.format import plain
from spikeview.rules.comparison.conclusion import conclude
from spikeview.rules.comparison.pair import Comparison


def as_plain(comparison: Comparison) -> dict[str, Any]:
    """Everything as JSON can hold it: the object of `spikeview compare --json`."""
    found = conclude(comparison)
    return {
        "baseline": comparison.baseline.run.path,
        "run": comparison.run.run.path,
        "executed_steps": comparison.horizon,
        "answer": found.answer.value,
        "why": found.why,
        "notes": list(found.notes),
        "measures": [
            {
                "id": each.id,
                "title": each.title,
                "unit": each.unit,
                "baseline": plain(each.baseline),
                "run": plain(each.run),
                "ratio": plain(each.ratio),
            }
            for each in comparison.measures
        ],
        "trajectory": [
            {"executed_steps": each.steps, "baseline": plain(each.baseline), "run": plain(each.run)}
            for each in comparison.trajectory
        ],
        "changes": [{"name": each.name, "baseline": each.baseline, "run": each.run} for each in comparison.changes],
        "outlier_batches": [
            {
                "batch_id": each.batch,
                "row": each.row,
                "baseline": vars(each.baseline),
                "run": None if each.run is None else vars(each.run),
            }
            for each in comparison.outliers
        ],
    }
