"""What a log holds beside the rows of training: validation, summaries, counters that begin anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recorder.schema import COLUMNS
from spikeview.importers.assemble import IDENTITY
from spikeview.importers.naming import SPLITS, held_out, plain_name
from spikeview.importers.table import Chunks

Event = dict[str, Any]


def by_split(table: pa.Table) -> tuple[pa.Table, list[Event]]:
    """The rows of training, and the others as events, where a column says of each row which it is."""
    for name in table.column_names:
        if plain_name(name) not in SPLITS or not pa.types.is_string(table[name].type):
            continue
        texts = pc.unique(table[name]).to_pylist()
        out = [text for text in texts if text is not None and held_out(text)]
        if not out:
            continue
        held = pc.is_in(table[name], pa.array(out)).to_numpy()
        rows = np.cumsum(~held) - 1
        return table.filter(pa.array(~held)), _events(table.filter(pa.array(held)), rows[held].tolist())
    return table, []


def without_values(columns: Mapping[str, Chunks]) -> tuple[dict[str, Chunks], list[Event]]:
    """The rows that hold a value of a transition, and the others as events."""
    own = [name for name in columns if name in COLUMNS and name not in IDENTITY]
    if not own:
        return dict(columns), []
    held = np.logical_or.reduce([columns[name].is_valid().to_numpy() for name in own])
    if held.all():
        return dict(columns), []
    rows = np.cumsum(held) - 1
    others = pa.table({name: column.filter(pa.array(~held)) for name, column in columns.items()})
    kept = {name: column.filter(pa.array(held)) for name, column in columns.items()}
    return kept, _events(others, rows[~held].tolist())


def restarts_with_epochs(step: Chunks, epoch: Chunks | None) -> bool:
    """Whether a step counter is one of each epoch: it goes back, and only where a new epoch begins."""
    if epoch is None or step.null_count or epoch.null_count:
        return False
    back = np.diff(step.to_numpy()) < 0
    return bool(back.any() and (np.diff(epoch.to_numpy())[back] > 0).all())


def _events(table: pa.Table, rows: list[int]) -> list[Event]:
    """One event a row: a validation where a loss was held out, else further values."""
    events = []
    for row, values in zip(rows, table.to_pylist(), strict=True):
        told = {name.removeprefix("user_"): value for name, value in values.items() if value is not None}
        split = next((told[name] for name in told if plain_name(name) in SPLITS), None)
        losses = [name for name in told if "loss" in plain_name(name) and (held_out(name) or split is not None)]
        if losses:
            events.append({"loss": told.pop(losses[0]), **told, "kind": "validation", "row": max(row, 0)})
        else:
            events.append({**told, "kind": "metrics", "row": max(row, 0)})
    return events
