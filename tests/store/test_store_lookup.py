"""The rows of one step are found without reading the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from recorder.store import RunWriter, StoreError, parts, read_run, read_step

MakeRow = Callable[..., dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path, make_row: MakeRow, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sealed parts of groups of five rows and a journal; step 7 has two micro-steps, and is taken again later."""
    monkeypatch.setattr(parts, "ROW_GROUP", 5)
    writer = RunWriter.create(tmp_path / "run", {}, roll_rows=20)
    steps = [*range(8), *range(7, 40), *range(7, 12)]
    for row, step in enumerate(steps):
        writer.append(make_row(row, step=step), user={"own": f"step {step}"} if row % 2 else None)
    writer._background.shutdown(wait=True)
    return tmp_path / "run"


def test_the_rows_of_a_step_are_those_of_the_whole_run(run: Path) -> None:
    whole = read_run(run).table
    assert len(list(run.rglob("part-*"))) == 2 and len(list(run.rglob("_journal-*"))) == 1
    for step in (0, 7, 11, 12, 39, 40, -1):
        found = read_step(run, step)
        expected = [row for row in whole.to_pylist() if row["step"] == step]
        assert found.to_pylist() == [{name: row[name] for name in found.column_names} for row in expected]
    assert read_step(run, 7)["row"].to_pylist() == [7, 8, 41]
    assert read_step(run, 7)["user_own"].to_pylist() == ["step 7", None, "step 7"]
    assert read_step(run, 40).num_rows == 0


def test_only_what_can_hold_the_step_is_read(run: Path) -> None:
    part = run / "steps/rank=0/part-000001.parquet"
    group = pq.ParquetFile(part).metadata.row_group(3)
    column = group.column([c.name for c in pq.ParquetFile(part).metadata.schema].index("loss"))
    data = bytearray(part.read_bytes())
    data[column.data_page_offset + column.total_compressed_size - 2] ^= 0xFF
    part.write_bytes(data)
    assert read_step(run, 20)["row"].to_pylist() == [21]
    with pytest.raises(StoreError, match=r"part-000001\.parquet: is damaged"):
        read_step(run, 38)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such directory"):
        read_step(tmp_path / "missing", 0)
