"""The transition before the first bad observation, and the rows around it."""

from __future__ import annotations

import math
from typing import Any

from recorder.schema import COLUMNS, STEPS
from spikeview.analysis.clocks import skipped_or_declined
from spikeview.analysis.signals import SIGNALS
from spikeview.format import DIGITS, cell, label, mads, number
from spikeview.rules.diagnosis import Diagnosed, View
from spikeview.rules.wording import row_of

NEIGHBOURS = 4
OUTSIDE, FAR = 3.0, 5.0

ALWAYS_SHOWN = {
    *("batch_id", "loss", "grad_norm", "max_norm", "clip_coef", "loss_scale"),
    *("attempted", "executed", "moved", "scheduled", "lr", "update_ratio", "update_cosine"),
}
DUMP: tuple[tuple[str, str], ...] = (
    ("loss", "loss"),
    ("grad_norm", "norm"),
    ("clip_coef", "coef"),
    ("lr", "lr"),
    ("loss_scale", "scale"),
    ("clocks", "att/exe/sch"),
    ("update_ratio", "ratio"),
    ("update_cosine", "cos"),
)
WATCHED = {signal.column: signal for signal in SIGNALS}
# What a reader seldom needs: told in one line, below the values.
ASIDE = {
    *("precision", "rng_seed", "grad_norm_source", "grad_norm_is_unscaled", "grad_none_params", "update_kind"),
    *("attempted_n", "executed_n", "scheduled_n", "memory_bytes"),
}
CLOCKS = ("attempted_n", "executed_n", "scheduled_n")


def measured(view: View, name: str, position: int, digits: int = DIGITS) -> dict[str, Any]:
    """A cell with the baseline it is judged by: `center`, `mads` and its text `deviation` may be None.

    `level` is `ordinary`, `outside` (beyond 3 MADs), `far` (beyond 5), `nonfinite`, or empty where nothing can be
    said; a watched signal counts only on its bad side. `out` says that it is beyond its signal's own threshold.
    """
    found = cell(view.run, name, position, digits)
    baseline = view.baselines.get(name)
    center = float(baseline.center[position]) if baseline is not None else math.nan
    deviation = float(baseline.deviation[position]) if baseline is not None else math.nan
    known = not math.isnan(deviation) and found["kind"] == "finite"
    signal = WATCHED.get(name)
    distance = abs(deviation) if signal is None else signal.side * deviation
    level = "" if not known else "far" if distance > FAR else "outside" if distance > OUTSIDE else "ordinary"
    if found["kind"] in ("nan", "inf"):
        level = "nonfinite"
    return {
        **found,
        "center": None if math.isnan(center) else number(center, signed=name == "update_cosine", digits=digits),
        "mads": deviation if known else None,
        "deviation": mads(deviation) if known else None,
        "level": level,
        "out": level == "nonfinite" or (signal is not None and distance > signal.threshold),
    }


def transition(diagnosed: Diagnosed) -> dict[str, Any] | None:
    """Every value of the transition to inspect in causal order, each beside its baseline; None where there is none.

    `values` holds the recorded columns and those that a reader would miss; `not_recorded` and
    `not_applicable` name the others. `judged` is false where no value had a baseline.
    """
    position, view = diagnosed.transition, diagnosed.view
    if position is None:
        return None
    run, first = view.run, diagnosed.incident.first_bad.position
    names = [column.name for column in STEPS if column.phase != "identity"] + run.user_columns
    cells = {name: measured(view, name, position) for name in names}
    absent = [name for name in names if cells[name]["kind"] == "not_recorded" and name not in ALWAYS_SHOWN]
    pointless = [name for name in names if cells[name]["kind"] == "not_applicable" and name not in ALWAYS_SHOWN]
    return {
        "row": row_of(run, position),
        "step": cell(run, "step", position),
        "is_first_bad": position == first,
        "rows_before": first - position,
        "values": [_value(name, cells[name]) for name in names if name not in absent + pointless],
        "not_recorded": absent,
        "not_applicable": pointless,
        "out_of_baseline": [label(name) for name in names if cells[name]["out"]],
        "judged": any(value["level"] for value in cells.values()),
    }


def _value(name: str, value: dict[str, Any]) -> dict[str, Any]:
    column = COLUMNS.get(name)
    return {
        "name": name,
        "label": label(name),
        "aside": name in ASIDE,
        "phase": column.phase if column else "yours",
        "unit": column.unit if column else "",
        **value,
    }


def neighbours(diagnosed: Diagnosed, rows: int = NEIGHBOURS) -> list[dict[str, Any]]:
    """So many rows on either side of the first bad one and of the transition before it.

    `gap` counts the rows left out before one.
    """
    view, run = diagnosed.view, diagnosed.view.run
    first = diagnosed.incident.first_bad.position
    centres = {first} if diagnosed.transition is None else {first, diagnosed.transition}
    shown = sorted({at for centre in centres for at in range(centre - rows, centre + rows + 1) if 0 <= at < len(run)})
    skips = skipped_or_declined(run)
    told = []
    for before, at in zip([shown[0] - 1, *shown], shown, strict=False):
        told.append(
            {
                "row": row_of(run, at),
                "step": cell(run, "step", at),
                "batch": cell(run, "batch_id", at),
                "gap": at - before - 1,
                "first_bad": at == first,
                "transition": at == diagnosed.transition,
                "skipped": bool(skips[at]),
                "cells": [_clocks(view, at) if name == "clocks" else measured(view, name, at) for name, _ in DUMP],
            }
        )
    return told


def _clocks(view: View, position: int) -> dict[str, Any]:
    cells = [cell(view.run, name, position) for name in CLOCKS]
    together = {
        "kind": "finite",
        "value": [found["value"] for found in cells],
        "text": "/".join(found["text"] for found in cells),
    }
    return {**together, "center": None, "mads": None, "deviation": None, "level": "", "out": False}
