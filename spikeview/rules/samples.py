"""Which batches held a sample, and which of them lie in an incident."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recorder.sample_ids import from_text, place_of
from recorder.store.values import clean_text
from spikeview.cancelling import checkpoint
from spikeview.format import plain
from spikeview.rules.diagnosis import Diagnosis, points_back
from spikeview.rules.wording import row_of
from spikeview.run import Run

ASKED = 256


@dataclass(frozen=True)
class Held:
    """A row whose batch held the sample, at `place` of the batch from 0 on.

    `position` is that of the row among those of the first optimizer of its rank. `incident` is the number of the one
    that the row lies in, from 1 on, and `begins` whether it begins there.
    """

    run: Run
    position: int
    place: int
    incident: int | None
    begins: bool

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        run, at = self.run, self.position
        numbers = {name: int(run.values(name)[at]) if run.recorded(name)[at] else None for name in _WHERE}
        loss = run.values("loss")[at].item() if run.recorded("loss")[at] else None
        executed = bool(run.values("executed")[at]) if run.recorded("executed")[at] else None
        return {
            "rank": run.rank,
            "row": row_of(run, at),
            **numbers,
            "batch_id": run.text("batch_id", at),
            "place": self.place,
            "loss": plain(loss),
            "executed": executed,
            "abandoned": bool(run.abandoned[at]),
            "incident": self.incident,
            "begins_incident": self.begins,
        }


_WHERE = ("segment", "step", "micro_step")


def first_ids(run: Run) -> list[str]:
    """The first batch ids of a run, without rows that have none."""
    return [str(text) for text in run.table["batch_id"].drop_null()[:ASKED].to_pylist()] if "batch_id" in run else []


def lists_samples(run: Run) -> bool | None:
    """Whether the first batch ids of a run are lists of samples; None where it has none."""
    texts = first_ids(run)
    return any(from_text(text) is not None for text in texts) if texts else None


def batches_with(sample: int | str, runs: Mapping[int, Run], diagnosis: Diagnosis) -> list[Held]:
    """The rows of all ranks whose batch held the sample, in the order of rows."""
    views = (run.of(run.optimizers[0]) if run.optimizers else run for run in runs.values() if "batch_id" in run)
    found = [
        Held(view, position, place, *_incident(diagnosis, view.rank, row_of(view, position)))
        for view in views
        for position, place in _places(sample, view)
    ]
    return sorted(found, key=lambda held: (row_of(held.run, held.position), held.run.rank))


def shared_samples(diagnosis: Diagnosis) -> tuple[dict[Any, list[int]], int]:
    """The samples in the batches that begin several incidents, with the numbers of these, most first.

    And how many incidents there are whose first batch names its samples. Where an update was bad first, no batch began.
    """
    held: dict[Any, list[int]] = {}
    count = 0
    for number, each in enumerate(diagnosis.incidents, start=1):
        first = each.incident.first_bad
        text = each.view.run.text("batch_id", first.position) if points_back(first) else None
        samples = None if text is None else from_text(text)
        count += samples is not None
        for sample in dict.fromkeys(each for each in samples or () if _is_hashable(each)):
            held.setdefault(sample, []).append(number)
    several = {sample: numbers for sample, numbers in held.items() if len(numbers) > 1}
    return dict(sorted(several.items(), key=lambda item: -len(item[1]))), count


def _is_hashable(sample: Any) -> bool:
    """Whether a sample is a number, a name or a tuple of them; other JSON may stand in a list of somebody's own."""
    return all(map(_is_hashable, sample)) if isinstance(sample, tuple) else isinstance(sample, Hashable)


def _places(sample: int | str, run: Run) -> Iterator[tuple[int, int]]:
    """Positions whose batch holds the sample, and its place in it; each id is read once, however often it comes."""
    column = run.table["batch_id"].cast(pa.large_string())
    may = pc.match_substring_regex(column, _trace_of(sample)).fill_null(False)
    rows = may.to_numpy()
    ids: Any = column.filter(rows).combine_chunks().dictionary_encode()
    places = [place_of(str(text.as_py()), sample) for text in ids.dictionary]
    for position, code in zip(np.flatnonzero(rows).tolist(), ids.indices.to_pylist(), strict=True):
        checkpoint()
        place = places[code]
        if place is not None:
            yield position, place


def _trace_of(sample: int | str) -> str:
    """A pattern that every id with the sample matches: it is written there, or stands for more than is written."""
    if isinstance(sample, int):
        return rf"[\[, ]{sample}[\], ]|\d-\d|^\[\d+ of "
    return re.escape(clean_text("sample", json.dumps(sample, ensure_ascii=False)))


def _incident(diagnosis: Diagnosis, rank: int, row: int) -> tuple[int | None, bool]:
    """The number of the incident that this row of a rank lies in, and whether it begins there."""
    for number, each in enumerate(diagnosis.incidents, start=1):
        seen = each.elsewhere.rows if each.elsewhere is not None else {}
        first, last = seen.get(rank, (row + 1, row))
        if first <= row <= last:
            return number, row == first and rank == each.view.run.rank
    return None, False
