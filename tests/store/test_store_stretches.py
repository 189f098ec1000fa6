"""What is found in the rows stretch by stretch is what all of them at once would give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from recorder.schema import COLUMNS, STEPS
from recorder.store import parts
from recorder.store.clock import falls
from recorder.store.lazy_table import STRETCH, LazyTable
from recorder.store.parts import ROW_GROUP, look_at_part, write_part

ROWS = 2 * STRETCH + 10


@pytest.mark.parametrize("without", [(), (5, STRETCH - 1, STRETCH, ROWS - 1)])
def test_steps_that_fall_where_a_stretch_begins(without: tuple[int, ...]) -> None:
    steps, segments = np.arange(ROWS), np.zeros(ROWS, dtype=np.int32)
    for place in (100, STRETCH, STRETCH + 1, 2 * STRETCH - 1):
        steps[place:] -= 40
    segments[2 * STRETCH :] += 1
    steps[2 * STRETCH :] -= 1  # the step of the row before, in a new segment
    mask = np.zeros(ROWS, dtype=bool)
    mask[list(without)] = True
    table = pa.table({"step": pa.array(steps, mask=mask), "segment": segments})

    places, begins = falls(table)

    known = np.maximum.accumulate(np.where(mask, 0, np.arange(ROWS)))
    filled = steps[known]
    new = np.diff(segments) != 0
    true = 1 + np.flatnonzero((np.diff(filled) < 0) | new & (np.diff(filled) == 0))
    assert places.tolist() == true.tolist()
    assert begins.tolist() == new[true - 1].tolist()
    assert 2 * STRETCH in places.tolist()


def test_texts_of_a_stretch_of_a_part_are_found_group_by_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_AT_ONCE", 2)
    rows = 5 * ROW_GROUP + 7
    named = [f"adam{row // 20_000}" for row in range(rows)]
    numbers = {name: np.arange(rows) for name in ("row", "segment", "step", "micro_step", "time_ns")}
    table = pa.table({**numbers, "optimizer": named})
    table = pa.table({name: table[name].cast(COLUMNS[name].arrow) for name in table.column_names})
    path = tmp_path / "steps" / "rank=0" / "part-000000.parquet"
    path.parent.mkdir(parents=True)
    write_part(path, table, np.zeros(0, dtype=np.int64))
    lazy = LazyTable(STEPS).followed([look_at_part(path, STEPS, None)])
    for first, count in ((0, rows), (1, 1), (ROW_GROUP - 1, 2), (70_000, 80_000), (3 * ROW_GROUP, rows)):
        assert lazy.slice(first, count).distinct("optimizer") == list(dict.fromkeys(named[first : first + count]))


def test_a_part_that_is_put_in_the_place_of_another_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "steps" / "rank=0" / "part-000000.parquet"
    path.parent.mkdir(parents=True)
    for rows in (100, 250):
        numbers = {name: np.arange(rows) for name in ("row", "segment", "step", "micro_step", "time_ns")}
        table = pa.table({**numbers, "optimizer": ["adam"] * rows})
        write_part(path, table, np.zeros(0, dtype=np.int64))
        assert look_at_part(path, STEPS, None).read(["step"])["step"].to_pylist() == list(range(rows))
