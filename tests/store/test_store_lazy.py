"""A run that is opened lazily: the same rows, of which a column is read when it is asked for."""

from __future__ import annotations

import random
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recorder.store import RunWriter, StoreError, read_run
from recorder.store.folder import part_path
from recorder.store.lazy_table import FEW, LazyTable
from spikeview.importers import Asked, RunError, open_run


def row_of(number: int, **columns: Any) -> dict[str, Any]:
    clocks = {"attempted": True, "executed": number % 3 > 0, "optimizer": "main", "time_ns": number}
    return {"row": number, "step": number, "loss": 1.0 / (number + 1), "batch_id": f"b{number}", **clocks, **columns}


def recorded(path: Path, rows: int = 40, roll: int = 16) -> Path:
    """Parts of which the user's field is a number in some, a text in others, and missing in the first."""
    with closing(RunWriter.create(path, {}, roll_rows=roll)) as writer:
        for number in range(rows):
            user = {} if number < roll else {"kind": number if number < 2 * roll else f"n{number}"}
            writer.append(row_of(number), user)
    return path


def lazily(path: Path) -> LazyTable:
    table = read_run(path, lazily=True).steps
    assert isinstance(table, LazyTable)
    return table


def test_every_column_is_the_one_that_is_read_at_once(tmp_path: Path) -> None:
    whole, lazy = read_run(recorded(tmp_path / "run")).table, lazily(tmp_path / "run")
    assert lazy.column_names == whole.column_names
    assert lazy.num_rows == whole.num_rows
    for name in whole.column_names:
        assert lazy[name].combine_chunks() == whole[name].combine_chunks()
        assert lazy.slice(3, 30)[name].to_pylist() == lazy[name].to_pylist()[3:33]
        assert lazy.holds(name) == (whole[name].null_count < whole.num_rows)
    assert lazy.whole().equals(whole)
    assert lazy.distinct("optimizer") == ["main"]
    assert lazy.slice(14, 4).distinct("batch_id") == ["b14", "b15", "b16", "b17"]


def test_columns_that_are_fetched_together_are_the_same(tmp_path: Path) -> None:
    lazy = lazily(recorded(tmp_path / "run"))
    lazy.fetch(["loss", "no_such_column", "step"])
    assert lazy["loss"].to_pylist() == [1.0 / (number + 1) for number in range(40)]
    assert lazy["step"].to_pylist() == list(range(40))


def test_a_few_rows_of_a_long_part_and_many_of_them_are_the_same(tmp_path: Path) -> None:
    lazy = lazily(recorded(tmp_path / "run", rows=70_000, roll=70_000))
    for first, count in ((0, 5), (32_760, 20), (69_998, 2), (32_000, FEW + 900)):
        steps = list(range(first, first + count))
        assert lazy.slice(first, count)["step"].to_pylist() == steps
        assert lazy.slice(first, count).whole()["step"].to_pylist() == steps


def test_nothing_is_read_of_a_column_that_nobody_asks_for(tmp_path: Path) -> None:
    damage(recorded(tmp_path / "run", rows=2000, roll=2000))
    lazy = lazily(tmp_path / "run")
    assert lazy["step"].to_pylist() == list(range(2000))
    with pytest.raises(StoreError, match=r"part-000000\.parquet: is damaged"):
        lazy["loss"]
    with pytest.raises(StoreError):
        read_run(tmp_path / "run")


def test_who_asks_for_a_damaged_column_hears_which_part_it_is(tmp_path: Path) -> None:
    damage(recorded(tmp_path / "run", rows=2000, roll=2000))
    run = open_run(tmp_path / "run", asked=Asked(lazily=True))
    with pytest.raises(RunError, match=r"part-000000\.parquet: is damaged .*; restore it from a copy"):
        run.values("loss")


def test_nothing_is_read_of_a_part_that_was_put_in_the_place_of_another(tmp_path: Path) -> None:
    lazy = lazily(recorded(tmp_path / "run", rows=3000, roll=2000))
    shutil.rmtree(tmp_path / "run")
    with closing(RunWriter.create(tmp_path / "run", {}, roll_rows=2000)) as writer:
        for number in range(3000):
            writer.append(row_of(number, loss=7.0))
    for rows in (lazy, lazy.slice(5, 3)):
        with pytest.raises(StoreError, match=r"part-000000\.parquet: is another part .*; open the run again"):
            rows["loss"]


def test_a_part_that_is_taken_away_is_told_of(tmp_path: Path) -> None:
    run = open_run(recorded(tmp_path / "run", rows=2000, roll=900), asked=Asked(lazily=True))
    part_path(tmp_path / "run/steps/rank=0", 1).unlink()
    with pytest.raises(RunError, match="is not there any more"):
        run.values("loss")


@pytest.mark.parametrize("seed", range(4))
def test_a_run_that_is_followed_lazily_is_the_run(tmp_path: Path, seed: int) -> None:
    chance, path = random.Random(seed), tmp_path / "run"
    with closing(RunWriter.create(path, {}, roll_rows=30)) as writer:
        writer.append(row_of(0))
        run = open_run(path, asked=Asked(lazily=True))
        number = 1
        for _ in range(25):
            for _ in range(chance.randrange(12)):
                writer.append(row_of(number), {"seen": number} if chance.random() < 0.5 else {})
                if chance.random() < 0.3:
                    writer.amend(row_of(number, loss=chance.random()))
                number += 1
            for name in chance.sample(["loss", "step", "executed", "user_seen", "batch_id"], 2):
                run.values(name)
            run = run.refresh()
    run, afresh = run.refresh(), open_run(path)
    for name in (*afresh.table.column_names, "user_seen"):
        assert run.values(name).tolist() == pytest.approx(afresh.values(name).tolist(), nan_ok=True)
        assert run.kind(name).tolist() == afresh.kind(name).tolist()
    assert run.text("batch_id", 5) == "b5"


def damage(run: Path) -> None:
    """Spoil a byte of the data of one column."""
    path = part_path(run / "steps/rank=0", 0)
    chunk = next(chunk for chunk in _chunks(path) if chunk.path_in_schema == "loss")
    data = bytearray(path.read_bytes())
    at = chunk.data_page_offset + chunk.total_compressed_size - 8
    data[at] ^= 0xFF
    path.write_bytes(bytes(data))


def _chunks(path: Path) -> list[Any]:
    metadata = pq.ParquetFile(path).metadata
    return [metadata.row_group(0).column(at) for at in range(metadata.num_columns)]


def changed(path: Path, number: int, **columns: Any) -> Path:
    """The run with other columns in one of its parts, as another writer may have made it."""
    part = part_path(path / "steps" / "rank=0", number)
    table = pq.read_table(part)
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values(table.num_rows)))
    pq.write_table(table.replace_schema_metadata(None), part)
    return path


def test_a_part_without_rows_is_no_harm(tmp_path: Path) -> None:
    path = recorded(tmp_path / "run")
    part = part_path(path / "steps" / "rank=0", 1)
    pq.write_table(pq.read_table(part).slice(0, 0), part)
    run = open_run(path, asked=Asked(lazily=True))
    assert run.values("loss").tolist() == open_run(path).values("loss").tolist()
    assert len(run) == 24


@pytest.mark.parametrize("values", [lambda rows: ["x"] * rows, lambda rows: [2**40] * rows])
def test_values_of_another_type_are_told_of_alike(tmp_path: Path, values: Any) -> None:
    path = changed(recorded(tmp_path / "run"), 1, segment=values)
    with pytest.raises(RunError, match="another type than their columns"):
        open_run(path)
    with pytest.raises(RunError, match=r"part-000001\.parquet: holds values of another type than their columns"):
        open_run(path, asked=Asked(lazily=True)).values("segment")


def test_an_optimizer_that_is_named_by_a_number_is_a_text(tmp_path: Path) -> None:
    path = changed(recorded(tmp_path / "run"), 1, optimizer=lambda rows: [7] * rows)
    run = open_run(path, asked=Asked(lazily=True))
    assert run.optimizers == open_run(path).optimizers == ["main", "7"]
    assert len(run.of("7")) == 16
