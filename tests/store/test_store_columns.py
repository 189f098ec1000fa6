"""Columns that this version does not know: kept, whatever their type, and though only some parts have them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recorder.store import RunWriter
from spikeview.cells import Kind
from spikeview.importers import open_run

MakeRow = Callable[..., dict[str, Any]]
LACKS, NAN = Kind.NOT_RECORDED, Kind.NAN


@pytest.mark.parametrize(
    ("parts", "values", "kinds"),
    [
        ([None, [1, None]], [0, 0, 1, 0], [LACKS, LACKS, 0, LACKS]),
        ([[1, 2], [0.5, float("nan")]], [1.0, 2.0, 0.5, np.nan], [0, 0, 0, NAN]),
        ([[True, None], None], [True, False, False, False], [0, LACKS, LACKS, LACKS]),
        ([["a", None], [1.5, 3.0]], ["a", None, "1.5", "3"], [0, LACKS, 0, 0]),
        ([pa.array(["a", "b"]).dictionary_encode(), ["c", "d"]], ["a", "b", "c", "d"], [0, 0, 0, 0]),
        ([pa.array([2**64 - 1, 5], pa.uint64()), None], [2**64 - 1, 5, 0, 0], [0, 0, LACKS, LACKS]),
        ([pa.array([2**64 - 1, 5], pa.uint64()), [-1, 2]], [2.0**64, 5.0, -1.0, 2.0], [0, 0, 0, 0]),
        ([pa.array([1.5, None], pa.float32()), [None, 2.5]], [1.5, np.nan, np.nan, 2.5], [0, LACKS, LACKS, 0]),
    ],
)
def test_a_column_of_another_writer_is_kept(
    tmp_path: Path, make_row: MakeRow, parts: list[Any], values: list[Any], kinds: list[int]
) -> None:
    writer = RunWriter.create(tmp_path, {}, roll_rows=2)
    for number in range(4):
        writer.append(make_row(number), user={"own": number})
    writer.close()
    for number, column in enumerate(parts):
        path = tmp_path / f"steps/rank=0/part-00000{number}.parquet"
        if column is not None:
            pq.write_table(pq.read_table(path).append_column("later", pa.array(column)), path)
    run = open_run(tmp_path)
    assert set(run.user_columns) == {"later", "user_own"}
    np.testing.assert_array_equal(run.values("later"), values)
    assert run.kind("later").tolist() == kinds
    assert run.values("user_own").tolist() == [0, 1, 2, 3]
    assert run.notes == ()
