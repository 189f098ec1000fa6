"""Rolling, amending, and following a run while it is written."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

from recorder.store import RunWriter, StoreError, folder, parts, read_run, sealer
from recorder.store import table as table_module
from recorder.store.recent import RECENT

MakeRow = Callable[..., dict[str, Any]]


def names(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "steps/rank=0").iterdir())


def test_full_journals_become_parts_and_close_leaves_no_journal(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path, {}, roll_rows=10)
    for number in range(35):
        writer.append(make_row(number))
    writer.close()
    writer.close()
    run = read_run(tmp_path)
    assert names(tmp_path) == [f"part-00000{number}.parquet" for number in range(4)]
    assert run.table["row"].to_pylist() == list(range(35))
    assert run.table["batch_id"].to_pylist() == [f"batch {number}" for number in range(35)]
    assert run.manifest["closed"] is True
    assert run.notes == ()


def test_rows_of_one_transition_are_not_parted(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path, {}, roll_rows=3)
    for number in range(4):
        for optimizer in ("generator", "discriminator"):
            writer.append(make_row(number, optimizer=optimizer))
    writer.close()
    assert names(tmp_path) == ["part-000000.parquet", "part-000001.parquet"]
    table = read_run(tmp_path).table
    assert table["row"].to_pylist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert table["optimizer"].to_pylist() == ["generator", "discriminator"] * 4


def test_the_last_row_can_be_amended_though_its_journal_is_full(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path, {}, roll_rows=2)
    writer.append(make_row(0), user={"own": 1, "gone": 2})
    writer.amend(make_row(0, scheduled=1, batch_id="amended"), user={"own": 3})
    writer.append(make_row(1))
    writer.amend(make_row(1, scheduled=2))
    writer.append(make_row(2))
    with pytest.raises(KeyError, match="can still be amended"):
        writer.amend(make_row(1, scheduled=5))
    live = read_run(tmp_path).table
    writer.close()
    table = read_run(tmp_path).table
    assert live.equals(table)
    assert table["row"].to_pylist() == [0, 1, 2]
    assert table["scheduled"].to_pylist() == [1, 2, None]
    assert table["batch_id"].to_pylist() == ["amended", "batch 1", "batch 2"]
    assert table["user_own"].to_pylist() == [3, None, None]
    assert table["user_gone"].to_pylist() == [None, None, None]


def test_pending_rows_stay_within_reach_until_their_values_arrive(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path, {}, roll_rows=4)
    for number in range(6):
        writer.append(make_row(number, loss=None), pending=True)
    assert read_run(tmp_path).pending == tuple(range(6))
    for number in range(6):
        writer.amend(make_row(number, loss=float(number)))
    writer.append(make_row(6))
    writer.append(make_row(7, loss=None), pending=True)
    writer.close()
    run = read_run(tmp_path)
    assert names(tmp_path) == ["part-000000.parquet", "part-000001.parquet"]
    assert run.table["loss"].to_pylist()[:6] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert run.pending == (7,)
    assert any("1 row were never copied" in note for note in run.notes)


def test_of_old_rows_only_pending_ones_can_be_amended(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path, {})
    total = 3 * RECENT
    for number in range(total):
        writer.append(make_row(number), pending=number == 5)
    writer.amend(make_row(5, loss=9.0))
    writer.amend(make_row(total - 1, loss=8.0))
    with pytest.raises(KeyError):
        writer.amend(make_row(6))
    writer.close()
    run = read_run(tmp_path)
    assert run.table["row"].to_pylist() == list(range(total))
    assert (run.table["loss"][5].as_py(), run.table["loss"][total - 1].as_py()) == (9.0, 8.0)
    assert run.pending == ()


def test_a_lost_pending_row_does_not_hold_the_roll_for_ever(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path, {}, roll_rows=4)
    writer.append(make_row(0), pending=True)
    for number in range(1, 20):
        writer.append(make_row(number))
    writer.close()
    run = read_run(tmp_path)
    assert len(names(tmp_path)) > 1
    assert run.table["row"].to_pylist() == list(range(20))
    assert run.pending == (0,)


def test_a_reader_sees_a_prefix_at_every_moment(tmp_path: Path, make_row: MakeRow) -> None:
    total, seen, turn, written = 500, [], threading.Condition(), threading.Event()
    writer = RunWriter.create(tmp_path, {}, roll_rows=7)

    def follow() -> None:
        last = False
        while not last:
            last = written.is_set()
            table = read_run(tmp_path).table
            with turn:
                seen.append(table)
                turn.notify()

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(follow)
        try:
            for number in range(total):
                if number % 50 == 0:  # keep the two side by side: go on only after a reading that began since
                    with turn:
                        goal = len(seen) + 2
                        assert turn.wait_for(lambda goal=goal: len(seen) >= goal or reader.done(), 60)  # type: ignore[misc]
                writer.append(make_row(number), user={"own": number})
        finally:
            written.set()
        reader.result()
    writer.close()
    final = read_run(tmp_path).table
    assert final["row"].to_pylist() == list(range(total))
    lengths = [table.num_rows for table in seen]
    assert lengths == sorted(lengths)
    assert len({length for length in lengths if 0 < length < total}) >= 5
    for table in seen:
        assert table.equals(final.slice(0, table.num_rows).select(table.column_names))


def test_close_waits_for_a_part_that_is_being_put_in_place(
    tmp_path: Path, make_row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the executor does not know its thread: a Ctrl-C that met it as it started leaves it so."""
    begun, closed, told = threading.Event(), threading.Event(), list[Exception]()
    put_in_place = parts.put_in_place

    def slowly(temporary: Path, path: Path) -> None:
        if threading.current_thread() is not threading.main_thread():
            begun.set()
            closed.wait(1)  # which comes only where close does not wait
        put_in_place(temporary, path)

    monkeypatch.setattr(parts, "put_in_place", slowly)
    writer = RunWriter.create(tmp_path, {}, roll_rows=5, on_error=told.append)
    for number in range(7):
        writer.append(make_row(number))
    assert begun.wait(60)
    shutdown = writer._background.shutdown
    monkeypatch.setattr(writer._background, "shutdown", lambda wait: None)
    writer.close()
    closed.set()
    shutdown(wait=True)
    assert told == []
    assert read_run(tmp_path).manifest["closed"] is True
    assert names(tmp_path) == ["part-000000.parquet", "part-000001.parquet"]


@pytest.mark.parametrize("listens", [True, False])
def test_a_failing_seal_is_told_and_made_up_for_at_close(
    tmp_path: Path, make_row: MakeRow, monkeypatch: pytest.MonkeyPatch, listens: bool
) -> None:
    told: list[Exception] = []
    failed = threading.Semaphore(0)

    def full(*_: object) -> None:
        failed.release()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sealer, "seal", full)
    writer = RunWriter.create(tmp_path, {}, roll_rows=5, on_error=told.append if listens else None)
    for number in range(12):
        writer.append(make_row(number))
    assert failed.acquire(timeout=60) and failed.acquire(timeout=60), "two journals were full"
    assert read_run(tmp_path).table["row"].to_pylist() == list(range(12))
    monkeypatch.undo()
    writer.close()
    assert [str(error) for error in told] == ["[Errno 28] No space left on device"] * (2 if listens else 0)
    assert names(tmp_path) == ["part-000000.parquet", "part-000001.parquet", "part-000002.parquet"]
    assert read_run(tmp_path).table["row"].to_pylist() == list(range(12))


def test_close_that_cannot_seal_says_so_and_loses_nothing(
    tmp_path: Path, make_row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    writer = RunWriter.create(tmp_path, {}, roll_rows=5)
    for number in range(12):
        writer.append(make_row(number))
    monkeypatch.setattr(folder, "write_part", full)
    with pytest.raises(StoreError, match="No space left on device"):
        writer.close()
    run = read_run(tmp_path)
    assert run.table["row"].to_pylist() == list(range(12))
    assert run.manifest["closed"] is False


def interrupted(line: int, call: Callable[[], object]) -> bool:
    """Make a call that a Ctrl-C meets at the so-manieth line of the store that it runs; whether it runs so many."""
    seen = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal seen
        if f"{os.sep}store{os.sep}" not in frame.f_code.co_filename:
            return None
        seen += event == "line"
        if seen == line:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize(("roll_rows", "lines"), [(100, count(1)), (2, count(1, 5))], ids=["within", "at a roll"])
def test_an_interrupt_at_any_line_costs_at_most_the_row_it_meets(
    tmp_path: Path, make_row: MakeRow, monkeypatch: pytest.MonkeyPatch, roll_rows: int, lines: Iterable[int]
) -> None:
    monkeypatch.setattr(table_module, "LOOK_NS", 0)
    for line in lines:
        run = tmp_path / f"{line}"
        writer = RunWriter.create(run, {}, roll_rows=roll_rows)
        for number in range(2):
            writer.append(make_row(number, precision="fp32"), user={"own": number})
        met = interrupted(line, partial(writer.append, make_row(2, precision="fp16"), user={"own": 2}))
        writer.append(make_row(3, precision="bf16"), user={"other": 3})
        writer.append(make_row(4, precision="fp16"))
        live = read_run(run).table
        writer.close()
        assert read_run(run).table.equals(live)
        rows = {row["row"]: (row["precision"], row["user_own"], row["user_other"]) for row in live.to_pylist()}
        expected = {0: ("fp32", 0, None), 1: ("fp32", 1, None), 2: ("fp16", 2, None)}
        expected |= {3: ("bf16", None, 3), 4: ("fp16", None, None)}
        assert rows in (expected, {row: values for row, values in expected.items() if row != 2}), line
        assert live.num_rows == len(rows)
        assert read_run(run).notes == ()
        if not met:
            break
    assert line > 50


def test_parts_are_encoded_for_size(tmp_path: Path, make_row: MakeRow) -> None:
    import pyarrow.parquet as pq

    writer = RunWriter.create(tmp_path, {})
    for number in range(100):
        writer.append(make_row(number))
    writer.close()
    group = pq.ParquetFile(tmp_path / "steps/rank=0/part-000000.parquet").metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    assert "BYTE_STREAM_SPLIT" in columns["loss"].encodings
    assert "DELTA_BINARY_PACKED" in columns["step"].encodings
    assert columns["optimizer"].has_dictionary_page
    assert not columns["batch_id"].has_dictionary_page
    assert pa.types.is_string(pq.read_schema(tmp_path / "steps/rank=0/part-000000.parquet").field("optimizer").type)


def test_recording_makes_pyarrow_import_nothing_that_a_training_did_not(tmp_path: Path) -> None:
    """Where pyarrow has to guess a type it imports pandas and dateutil, and ends the process if they are broken."""
    for name in ("pandas", "dateutil"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('broken')\n")
    script = """
import subprocess
import sys
from recorder.store import RunWriter
writer = RunWriter.create(sys.argv[1], {}, roll_rows=5)
for row in range(12):
    own = {"number": row, "mixed": "x" if row % 2 else 1.5, "flag": True, "late": None}
    writer.append({"row": row, "step": row, "optimizer": "main", "batch_id": str(row), "loss": 0.5}, own)
writer.close()
sys.exit("pandas" in sys.modules or "dateutil" in sys.modules)
"""
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    command = [sys.executable, "-c", script, str(tmp_path / "run")]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": paths})
    assert read_run(tmp_path / "run").table["user_mixed"].to_pylist()[:2] == ["1.5", "x"]
