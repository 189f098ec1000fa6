"""What a part says of itself: true, not asked of the rows again, and never trusted to make sense."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recorder.schema import COLUMNS, STEPS
from recorder.store import RunWriter
from recorder.store.clock import falls
from recorder.store.folder import part_path
from recorder.store.lazy_table import LazyTable
from recorder.store.parts import Part, look_at_part, write_part
from recorder.store.said import Said
from recorder.store.verify import verify
from spikeview.importers import Asked, open_run

NONE = np.zeros(0, dtype=np.int64)
MakeRow = Callable[..., dict[str, Any]]


def recorded(path: Path, count: int, make_row: MakeRow) -> Path:
    writer = RunWriter.create(path, {})
    for number in range(count):
        writer.append(make_row(number))
    writer.close()
    return path


def rows(steps: list[int], segments: list[int], names: list[str]) -> pa.Table:
    count = len(steps)
    values: dict[str, Any] = {"row": range(count), "micro_step": [0] * count, "time_ns": range(count)}
    values |= {"step": steps, "segment": segments, "optimizer": names}
    return pa.table({name: pa.array(list(each), COLUMNS[name].arrow) for name, each in values.items()})


@pytest.mark.parametrize(
    ("steps", "segments", "names", "said"),
    [
        ([3, 3, 4, 9], [1] * 4, ["adam"] * 4, Said((), (3, 9), 1, {"optimizer": "adam"})),
        ([3, 5, 4, 9], [1] * 4, ["adam"] * 4, Said((), (3, 9), None, {"optimizer": "adam"})),
        ([3, 4, 5, 6], [0, 0, 1, 1], ["adam"] * 4, Said((), (3, 6), None, {"optimizer": "adam"})),
        ([3, 3, 4, 4], [0] * 4, ["adam", "sgd"] * 2, Said((), (3, 4), 0)),
    ],
)
def test_a_part_says_what_is_true_of_all_its_rows(
    tmp_path: Path, steps: list[int], segments: list[int], names: list[str], said: Said
) -> None:
    path = part_path(tmp_path / "steps" / "rank=0", 0)
    path.parent.mkdir(parents=True)
    table = rows(steps, segments, names)
    write_part(path, table, NONE)
    part = look_at_part(path, STEPS, None)
    assert part.said == said
    lazy = LazyTable(STEPS).followed([part])
    assert lazy.distinct("optimizer") == list(dict.fromkeys(names))
    assert [found.tolist() for found in falls(lazy)] == [found.tolist() for found in falls(table)]


def test_steps_that_fall_from_one_part_to_the_next_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "steps" / "rank=0"
    folder.mkdir(parents=True)
    pieces = [([0, 1, 2], 0), ([2, 3, 4], 0), ([3, 4, 5], 0), ([5, 6, 7], 1), ([8, 9, 10], 2)]
    tables = [rows(steps, [segment] * 3, ["adam"] * 3) for steps, segment in pieces]
    for number, table in enumerate(tables):
        write_part(part_path(folder, number), table, NONE)
    parts = [look_at_part(part_path(folder, number), STEPS, None) for number in range(len(tables))]
    lazy = LazyTable(STEPS).followed(parts)
    places, begins = falls(lazy)
    assert (places.tolist(), begins.tolist()) == ([6, 9], [False, True])
    # of a part that is cut, nothing is known without a look
    assert [found.tolist() for found in falls(lazy.slice(1, 9))] == [[5, 8], [False, True]]


def test_a_run_is_opened_without_a_look_at_its_rows(
    tmp_path: Path, make_row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = recorded(tmp_path / "run", 500, make_row)
    read: list[tuple[str, ...]] = []
    whole = Part.read

    def watched(part: Part, names: Any, first: int = 0, last: int | None = None) -> pa.Table:
        read.append(tuple(names))
        return whole(part, names, first, last)

    monkeypatch.setattr(Part, "read", watched)
    run = open_run(path, asked=Asked(lazily=True))
    assert (len(run), run.optimizers, run.notes, read) == (500, ["main"], (), [])


def test_a_part_that_says_what_is_not_so_is_a_fault_and_nonsense_is_not_heard(
    tmp_path: Path, make_row: MakeRow
) -> None:
    path = recorded(tmp_path / "run", 20, make_row)
    part = part_path(path / "steps" / "rank=0", 0)
    table = pq.read_table(part)
    for metadata, faults in (
        (
            {b"segment": b"7", b"steps": b"[0, 19]", b"texts": b'{"optimizer": "other"}'},
            ["7 of its segment", "'other' of its opt"],
        ),
        ({b"steps": b"[0, 18]"}, ["(0, 18) of its steps"]),
        ({b"segment": b"true", b"steps": b"[19, 0]", b"texts": b'{"optimizer": 1}', b"pending": b'{"a": 1}'}, []),
        ({b"segment": b"[" * 9999, b"steps": b"[1e999, 2]", b"texts": b"\xff", b"pending": b"[-1, 99, null]"}, []),
    ):
        pq.write_table(table.replace_schema_metadata(metadata), part)
        found = verify(path, 0, {}).faults
        assert len(found) == len(faults), found
        assert all(fault in line for fault, line in zip(faults, found, strict=True)), found
        assert len(open_run(path, asked=Asked(lazily=True))) == 20


def test_an_optimizer_that_no_row_has_is_not_named(tmp_path: Path, make_row: MakeRow) -> None:
    path = tmp_path / "run"
    writer = RunWriter.create(path, {}, roll_rows=10)
    for number in range(20):
        writer.append(make_row(number))
    writer.close()
    part = part_path(path / "steps" / "rank=0", 0)
    lie = {b"texts": b'{"optimizer": "other"}'}
    pq.write_table(pq.read_table(part).replace_schema_metadata(lie), part)
    assert open_run(path, asked=Asked(lazily=True)).optimizers == ["main"]
