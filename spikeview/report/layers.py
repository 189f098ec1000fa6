"""Which layers carried the gradient's norm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spikeview.format import number, percent, shown
from spikeview.rules.diagnosis import Diagnosed
from spikeview.rules.wording import row_of

MOST = 8


def carriers(diagnosed: Diagnosed) -> dict[str, Any]:
    """The parameters with the largest gradients at the first row of the incident that has them.

    `share` is of the squared norm of the finite gradients, `share_before` the same at the last row before the incident
    that has them; None where that is not known. Those with non-finite gradients come first. `text` says it in words.
    """
    rows = _of(diagnosed)
    held = np.unique(rows["row"].to_numpy()) if rows.num_rows else np.zeros(0, dtype=np.int64)
    run, incident = diagnosed.view.run, diagnosed.incident
    first, last = row_of(run, incident.first_bad.position), row_of(run, incident.last)
    within, earlier = held[(held >= first) & (held <= last)], held[held < first]
    if not len(within):
        return {
            "row": None,
            "row_before": None,
            "top": [],
            "others": 0,
            "text": "The norms of single layers were not recorded here.",
        }
    row = int(within[0])
    row_before = int(earlier[-1]) if len(earlier) else None
    before = {} if row_before is None else _shares(rows, row_before)
    shares = _shares(rows, row)
    told = [
        {
            "name": each["name"],
            "grad_norm": number(each["grad_norm"]),
            "nonfinite": each["grad_nonfinite"],
            "share": shares.get(each["name"]),
            "share_before": before.get(each["name"]),
            "update_ratio": None if each.get("update_ratio") is None else number(each["update_ratio"]),
        }
        for each in _at(rows, row).to_pylist()
    ]
    told.sort(key=lambda each: (not each["nonfinite"], -(each["share"] or 0)))
    return {
        "row": row,
        "row_before": row_before,
        "top": told[:MOST],
        "others": max(0, len(told) - MOST),
        "text": " ".join(_sentences(row, row_before, told)),
    }


def _of(diagnosed: Diagnosed) -> pa.Table:
    """The layers of one optimizer whose gradients were measured."""
    layers = diagnosed.view.run.layers
    if layers is None or "grad_norm" not in layers.column_names:
        return pa.table({"row": pa.array([], pa.int64())})
    own = pc.equal(layers["optimizer"], pa.scalar(diagnosed.view.optimizer, pa.string()))
    return layers.filter(pc.and_(own, layers["grad_norm"].is_valid()))


def _at(rows: pa.Table, row: int) -> pa.Table:
    return rows.filter(pc.equal(rows["row"], pa.scalar(row, pa.int64())))


def _shares(rows: pa.Table, row: int) -> dict[str, float]:
    """Of each finite norm its share of their squares; of norms as large as a double can hold, too."""
    here = _at(rows, row)
    norms = here["grad_norm"].to_numpy()
    finite = np.isfinite(norms)
    largest = norms[finite].max(initial=0.0)
    if largest == 0:
        return {}
    squares = np.where(finite, norms / largest, 0.0) ** 2
    return {
        str(name): float(share)
        for name, share, known in zip(here["name"].to_pylist(), squares / squares.sum(), finite, strict=True)
        if known
    }


def _sentences(row: int, before: int | None, told: list[dict[str, Any]]) -> Iterator[str]:
    broken = [each["name"] for each in told if each["nonfinite"]]
    if broken:
        one = f"the gradient of parameter {shown(broken[0])} was"
        several = f"the gradients of parameter {shown(broken[0])} and {len(broken) - 1} more were"
        yield f"At row {row} {one if len(broken) == 1 else several} not finite."
    shared = [each for each in told if each["share"] is not None and not each["nonfinite"]]
    if shared:
        top = shared[0]
        was = "" if top["share_before"] is None else f"; at row {before} it was {percent(top['share_before'])}"
        yield f"Parameter {shown(top['name'])} carried {percent(top['share'])} of the squared norm at row {row}{was}."
