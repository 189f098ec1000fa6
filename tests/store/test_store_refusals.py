"""Bad input: one clear line that says what, why and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recorder.schema import SCHEMA_VERSION, STEPS, arrow_schema
from recorder.store import RunWriter, StoreError, is_run, read_run

MakeRow = Callable[..., dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path, make_row: MakeRow) -> Path:
    """A closed run of two parts."""
    writer = RunWriter.create(tmp_path / "run", {}, roll_rows=3)
    for number in range(6):
        writer.append(make_row(number))
    writer.close()
    return tmp_path / "run"


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(StoreError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 500
    return text


def test_paths_that_are_no_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("loss 1.0")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "readme").write_text("")
    for name, says in {
        "missing": "missing: no such directory; give the directory that the recorder wrote",
        "file": "file: is a file, not a run directory; give",
        "empty": "empty: is an empty directory; give",
        "other": "other: holds no run.json, so it is not a run; give",
    }.items():
        assert says in refusal(lambda path=tmp_path / name: read_run(path))  # type: ignore[misc]
        assert not is_run(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"schema_version": 1', "run.json: is not JSON"),
        ("[" * 100_000, "run.json: is not JSON"),
        ("[1]", "run.json: is not a JSON object"),
        ("{}", "run.json: has no schema_version"),
        ('{"schema_version": "1"}', "run.json: has no schema_version"),
        ('{"schema_version": true}', "run.json: has no schema_version"),
        (
            json.dumps({"schema_version": SCHEMA_VERSION + 1}),
            f"{SCHEMA_VERSION + 1}, and this version reads up to {SCHEMA_VERSION}; update spikeview",
        ),
    ],
)
def test_manifests_that_cannot_be_read(run: Path, text: str, says: str) -> None:
    (run / "run.json").write_text(text)
    assert says in refusal(lambda: read_run(run))
    assert says in refusal(lambda: RunWriter.create(run, {}, resume=True))
    assert (run / "run.json").read_text() == text


@pytest.mark.parametrize("cut", [0, 3, 50, -1])
def test_a_truncated_part_is_named(run: Path, cut: int) -> None:
    part = run / "steps/rank=0/part-000001.parquet"
    part.write_bytes(part.read_bytes()[:cut])
    assert "part-000001.parquet: is damaged or truncated" in refusal(lambda: read_run(run))


def test_a_part_with_a_flipped_byte_is_named(run: Path) -> None:
    part = run / "steps/rank=0/part-000000.parquet"
    data = bytearray(part.read_bytes())
    column = pq.ParquetFile(part).metadata.row_group(0).column(0)
    data[column.data_page_offset + column.total_compressed_size - 2] ^= 0xFF
    part.write_bytes(data)
    assert "part-000000.parquet: is damaged" in refusal(lambda: read_run(run))


def test_a_part_moved_away_leaves_the_rest_with_a_note(run: Path) -> None:
    (run / "steps/rank=0/part-000000.parquet").unlink()
    stored = read_run(run)
    assert stored.table["row"].to_pylist() == [3, 4, 5]
    assert stored.notes == ("part 0 of steps is missing: its rows are left out",)
    (run / "steps/rank=0/part-000001.parquet").rename(run / "steps/rank=0/part-999999999.parquet")
    assert read_run(run).notes == ("parts 0 to 999999998 of steps are missing: their rows are left out",)


def test_a_foreign_parquet_file_is_named(run: Path) -> None:
    pq.write_table(pa.table({"step": [1], "loss": [1.0]}), run / "steps/rank=0/part-000001.parquet")
    text = refusal(lambda: read_run(run))
    assert "part-000001.parquet: lacks the columns row, segment" in text
    identity = pq.read_table(run / "steps/rank=0/part-000000.parquet").drop_columns(["loss"])
    foreign = identity.append_column("loss", pa.array([[1.0]] * identity.num_rows))
    pq.write_table(foreign, run / "steps/rank=0/part-000001.parquet")
    assert "another type" in refusal(lambda: read_run(run))


def test_a_foreign_journal_is_named(run: Path) -> None:
    (run / "steps/rank=0/_journal-000002").write_bytes(b"something else entirely")
    assert "_journal-000002: is not a journal" in refusal(lambda: read_run(run))


def test_a_run_without_rows_is_an_empty_table_with_every_column(tmp_path: Path) -> None:
    RunWriter.create(tmp_path / "run", {}).close()
    stored = read_run(tmp_path / "run")
    assert stored.table.num_rows == 0
    assert stored.table.schema.equals(arrow_schema(STEPS))
    assert stored.notes == ()


def test_columns_of_a_later_writer_are_kept(run: Path) -> None:
    part = run / "steps/rank=0/part-000001.parquet"
    table = pq.read_table(part)
    pq.write_table(table.drop_columns(["lr"]).append_column("sharpness", pa.array([1.0, 2.0, 3.0])), part)
    stored = read_run(run).table
    assert stored.column_names == [*arrow_schema(STEPS).names, "sharpness"]
    assert stored["sharpness"].to_pylist() == [None, None, None, 1.0, 2.0, 3.0]
    assert stored["lr"].null_count == 6


def test_a_place_that_cannot_take_a_new_run(run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "rows/steps/rank=0").mkdir(parents=True)
    (tmp_path / "rows/steps/rank=0/part-000000.parquet").write_bytes(b"")
    before = sorted(run.rglob("*"))
    text = refusal(lambda: RunWriter.create(run, {}))
    assert text.endswith("holds a run already; pass resume=True to go on with it, or choose another path")
    assert sorted(run.rglob("*")) == before
    assert "is a file, and a run needs a directory" in refusal(lambda: RunWriter.create(tmp_path / "file", {}))
    assert "cannot be written" in refusal(lambda: RunWriter.create(tmp_path / "file/run", {}))
    assert "holds rows but no run.json" in refusal(lambda: RunWriter.create(tmp_path / "rows", {}))
    assert "holds rows but no run.json" in refusal(lambda: RunWriter.create(tmp_path / "rows", {}, resume=True))


def test_a_directory_with_other_files_may_take_a_run(tmp_path: Path, make_row: MakeRow) -> None:
    (tmp_path / "train.log").write_text("hello")
    writer = RunWriter.create(tmp_path, {})
    writer.append(make_row(0))
    writer.close()
    assert is_run(tmp_path)
    assert read_run(tmp_path).table.num_rows == 1
    assert (tmp_path / "train.log").read_text() == "hello"
