"""The rows around an incident that lead to the same diagnosis of it as the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recorder.schema import Mask
from recorder.store.lazy_table import in_memory
from spikeview.format import plural
from spikeview.rules.diagnosis import Diagnosed, Diagnosis, diagnose
from spikeview.rules.wording import row_of
from spikeview.run import Run

# Rows before the first bad one and after the last: a baseline looks back 201 healthy rows and a habit 400, and both
# count all rows from the start of a log to say how sure they are.
BEFORE, AFTER = 2_000, 400
LONGEST = 20_000
WIDER = 10


@dataclass(frozen=True)
class Excerpt:
    """Rows `first_row` to `last_row` of a run, by the recorder's numbers, and which of their incidents it is about."""

    run: Run
    first_row: int
    last_row: int
    incident: int
    text: str


def excerpt(diagnosis: Diagnosis, diagnosed: Diagnosed) -> Excerpt:
    """The fewest rows that are tried: BEFORE and AFTER the incident, then WIDER times as many, then all.

    Diagnosed by themselves they name the same first bad observation, transition, severity and persistence.
    """
    wanted = _verdict(diagnosed)
    for part, first, last in _parts(diagnosis.run, diagnosed):
        found = diagnose(part).incidents if len(part) < len(diagnosis.run) else diagnosis.incidents
        number = next((at for at, other in enumerate(found, start=1) if _verdict(other) == wanted), None)
        if number is not None:
            return Excerpt(part, first, last, number, _text(diagnosis.run, part, first, last))
    raise AssertionError("the whole run is the last part")


def _parts(run: Run, diagnosed: Diagnosed) -> Iterator[tuple[Run, int, int]]:
    view, incident = diagnosed.view.run, diagnosed.incident
    begin, end = incident.first_bad.position, incident.last
    numbers = _numbers(run)
    for factor in (1, WIDER):
        start = max(0, begin - factor * BEFORE)
        stop = min(len(view) - 1, end + factor * AFTER, begin + factor * LONGEST)
        first, last = row_of(view, start), row_of(view, stop)
        yield _between(run, numbers, first, last), first, last
    yield _between(run, numbers, int(numbers.min()), int(numbers.max())), int(numbers.min()), int(numbers.max())


def _between(run: Run, numbers: NDArray[np.int64], first: int, last: int) -> Run:
    """These rows with their layers and events. What was saved or resumed before them stays told."""
    kept: Mask = (first <= numbers) & (numbers <= last)
    table = in_memory(run.table)
    rows = table.append_column("row", pa.array(numbers)) if "row" not in run else table
    layers = run.layers
    if layers is not None and "row" in layers.column_names:
        at = layers["row"].to_numpy()
        layers = layers.filter(pa.array((first <= at) & (at <= last)))
    events = [
        event
        for event in run.events
        if isinstance(event.get("row"), int)
        and event["row"] <= last
        and (event["row"] >= first - 1 or event.get("kind") in ("checkpoint", "resume"))
    ]
    table = rows.filter(pa.array(kept))
    return replace(run, table=table, layers=layers, events=events, source=None, _cache={}, _views={}, _before={})


def _numbers(run: Run) -> NDArray[np.int64]:
    """The recorder's row numbers; positions where there are none."""
    return np.where(run.recorded("row"), run.values("row"), np.arange(len(run)))


def _verdict(diagnosed: Diagnosed) -> tuple[object, ...]:
    run, incident, transition = diagnosed.view.run, diagnosed.incident, diagnosed.transition
    first = incident.first_bad
    return (
        row_of(run, first.position),
        diagnosed.view.optimizer,
        first.signal,
        first.reason,
        None if transition is None else row_of(run, transition),
        incident.severity,
        incident.persistence,
    )


def _text(run: Run, part: Run, first: int, last: int) -> str:
    if len(part) == len(run):
        return f"a bundle of all {plural(len(run), 'row')} of its run"
    return (
        f"a bundle: rows {first} to {last}, {len(part):,} of the {len(run):,} of its run; "
        "the checks speak of these alone"
    )
