"""A run is followed while another process records it: every reading is a prefix, and costs what is new in it."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recorder.schema import COLUMNS
from recorder.store import RunWriter, StoredRun, StoreError, journal_reader, read_run, stored_table
from recorder.store.journal_reader import TORN, read_journal
from recorder.store.parts import read_part
from spikeview.importers import Asked, RunError, open_run
from spikeview.run import Run

MakeRow = Callable[..., dict[str, Any]]
REPOSITORY = Path(__file__).parents[2]
BATCH, BATCHES, ROLL = 17, 14, 40

# Rows of two optimizers with all that a recorder does to them, in batches that are asked for by a line each: values
# that come from a device a few rows later, a scheduler's step that is credited to the row before, a field that comes
# late and changes its type, a resume halfway, and one that goes back.
RECORD = f"""
import sys
from recorder.store import RunWriter

def writer_of(resume):
    return RunWriter.create(sys.argv[1], {{}}, resume=resume, roll_rows={ROLL})

def row_of(number, optimizer, **columns):
    return {{"row": number, "segment": writer.segment, "step": number - back, "optimizer": optimizer, "scheduled": 0,
            "time_ns": number, "batch_id": f"batch {{number % 50}}", "executed": number % 7 != 3, **columns}}

writer, begun, back = writer_of(False), 0, 0
number, waiting = 0, []
for batch in range({BATCHES}):
    sys.stdin.readline()
    for _ in range({BATCH}):
        if number > begun:
            for optimizer in ("a", "b"):
                if (number - 1, optimizer) not in waiting:
                    writer.amend(row_of(number - 1, optimizer, loss=1.0 / number, scheduled=1), {{"own": number - 1}})
        late = 60 <= number < 110
        for optimizer in ("a", "b"):
            writer.append(row_of(number, optimizer, loss=None if late else 1.0 / (number + 1)),
                          {{"own": number}} if not late else None, pending=late)
            waiting += [(number, optimizer)] * late
        for early, optimizer in waiting if len(waiting) >= 12 or number == 110 else []:
            writer.amend(row_of(early, optimizer, loss=1.0 / (early + 1)), {{"late": 0.5 if early > 90 else early}})
        waiting = [] if len(waiting) >= 12 or number == 110 else waiting
        if number % 10 == 0:
            writer.append_layers([{{"row": number, "optimizer": "a", "name": name}} for name in ("w", "b")])
            writer.event("note", row=number, text=f"note {{number}}")
        number += 1
    if batch == {BATCHES // 2}:
        writer.close()
        writer, begun, back = writer_of(True), number, 30
    print(number, flush=True)
writer.close()
print("closed", flush=True)
sys.stdin.readline()
"""


class Recording:
    """A process that records, a batch at a time."""

    def __init__(self, path: Path, process: subprocess.Popen[str]) -> None:
        self.path = path
        self._process = process

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def is_at_work(self) -> bool:
        return not select.select([self._process.stdout], [], [], 0)[0]

    def wait(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the writer died"
        return line.strip()


@contextmanager
def recording(path: Path) -> Iterator[Recording]:
    process = subprocess.Popen(
        [sys.executable, "-c", RECORD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
        text=True,
    )
    try:
        yield Recording(path, process)
    finally:
        process.kill()
        process.communicate()


def same(found: StoredRun, fresh: StoredRun) -> None:
    assert found.table.equals(fresh.table)
    assert found.layers.equals(fresh.layers)
    assert (found.pending, found.events, found.notes) == (fresh.pending, fresh.events, fresh.notes)
    assert (found.manifest, found.rewinds, found.rank) == (fresh.manifest, fresh.rewinds, fresh.rank)


def settled(run: StoredRun) -> np.ndarray[Any, Any]:
    """The rows that nothing may change any more: not those waiting for a device, nor each optimizer's last."""
    rows = np.ones(run.table.num_rows, dtype=bool)
    rows[list(run.pending)] = False
    names = np.array(run.table["optimizer"].to_pylist())
    for name in set(names):
        rows[np.flatnonzero(names == name)[-1]] = False
    return rows


def test_every_reading_is_a_prefix_of_the_final_run(tmp_path: Path) -> None:
    with recording(tmp_path / "run") as other:
        other.begin()
        assert other.wait() == str(BATCH)
        run = read_run(tmp_path / "run")
        seen = [run]
        for batch in range(1, BATCHES):
            other.begin()
            while other.is_at_work():
                seen.append(run := run.refreshed())
            assert other.wait() == str(BATCH * (batch + 1))
            seen.append(run := run.refreshed())
            while batch < BATCHES - 1 and (again := run.refreshed()) is not run:  # a journal was sealed meanwhile
                assert again.table.equals(run.table)
                run = again
            if batch < BATCHES - 1:
                same(run, read_run(tmp_path / "run"))
        assert other.wait() == "closed"
        final = run.refreshed()
        assert final.refreshed() is final
    same(final, read_run(tmp_path / "run"))
    assert final.table.num_rows == 2 * BATCH * BATCHES
    assert final.manifest["closed"] is True
    assert len({run.table.num_rows for run in seen}) >= BATCHES
    for run in seen:
        count = run.table.num_rows
        kept = pa.array(settled(run))
        expected = final.table.slice(0, count).select(run.table.column_names)
        assert run.table.cast(expected.schema).filter(kept).equals(expected.filter(kept))
        assert run.events == final.events[: len(run.events)]
        assert run.layers.equals(final.layers.slice(0, run.layers.num_rows))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """Which parts were read, and how many rows of journals."""
    told: dict[str, list[Any]] = {"parts": [], "rows": []}

    def part(path: Path, *rest: Any) -> Any:
        told["parts"].append(path)
        return read_part(path, *rest)

    def journal(path: Path, *rest: Any) -> Any:
        found = read_journal(path, *rest)
        told["rows"].append(0 if found is None else len(found))
        return found

    monkeypatch.setattr(stored_table, "read_part", part)
    monkeypatch.setattr(stored_table, "read_journal", journal)
    return told


def test_what_was_read_is_not_read_again(tmp_path: Path, make_row: MakeRow, reads: dict[str, list[Any]]) -> None:
    writer = RunWriter.create(tmp_path, {}, roll_rows=10)
    run = read_run(tmp_path)
    for number in range(95):
        writer.append(make_row(number))
        if number % 5 == 0:
            run = run.refreshed()
    writer.close()
    final = run.refreshed()
    assert sum(reads["rows"]) <= 95
    assert len(reads["parts"]) == len(set(reads["parts"])) == 10
    assert final.table.equals(read_run(tmp_path).table)


@pytest.mark.parametrize("roll_rows", [7, 1000])
def test_a_followed_run_is_what_a_fresh_reading_is_in_every_column(
    tmp_path: Path, make_row: MakeRow, roll_rows: int
) -> None:
    writer = RunWriter.create(tmp_path, {}, roll_rows=roll_rows)
    runs: list[Run] = []
    taken: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
    optimizers = ["a"]
    for number in range(60):
        if number == 30:
            optimizers = ["a", "b"]
        if number and number % 3 == 0:
            for optimizer in optimizers if number != 30 else ["a"]:
                writer.amend(make_row(number - 1, optimizer=optimizer, scheduled=1, loss=5.0), user={"own": 2})
        for optimizer in optimizers:
            own = {"own": 1 if number < 40 else 0.5, **({"late": "text"} if number > 20 else {})}
            columns = {"executed": number % 4 > 0, "loss": float("inf") if number % 9 == 8 else 1.0 / (number + 1)}
            writer.append(make_row(number, optimizer=optimizer, **columns), user=own)
        if number % 4 != 3:
            continue
        followed = runs[-1].refresh() if runs else open_run(tmp_path)
        fresh = open_run(tmp_path)
        assert followed.optimizers == fresh.optimizers
        for one, other in [(followed, fresh)] + [(followed.of(name), fresh.of(name)) for name in fresh.optimizers]:
            assert one.table.equals(other.table)
            for name in [*COLUMNS, "user_own", "user_late", "no_such"]:
                pairs = [
                    (getattr(one, what)(name), getattr(other, what)(name)) for what in ("values", "recorded", "kind")
                ]
                pairs.append((one.equals(name, "text"), other.equals(name, "text"))) if name == "user_late" else None
                for mine, expected in pairs:
                    assert mine.dtype == expected.dtype
                    assert not mine.flags.writeable
                    np.testing.assert_array_equal(mine, expected)
                    taken.append((mine, mine.copy()))
        runs.append(followed)
    while (newer := runs[-1].refresh()) is not runs[-1]:  # a journal was sealed meanwhile
        runs[-1] = newer
    for array, copy in taken:  # what came later changed nothing in what was handed out
        np.testing.assert_array_equal(array, copy)
    branch = runs[-2].refresh()  # a run may be refreshed twice, and both go on from it
    for name in COLUMNS:
        np.testing.assert_array_equal(branch.values(name), runs[-1].values(name))
    assert runs[0].of("a").refresh().of("b").table.equals(runs[-1].of("b").table)
    writer.close()


def test_a_row_that_waited_long_for_its_values_gets_them(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path, {})
    for number in range(300):
        writer.append(make_row(number, loss=None if number in (3, 100) else 1.0), pending=number in (3, 100))
    before = open_run(tmp_path)
    assert [note for note in before.notes if "2 rows are not copied yet" in note]
    writer.append(make_row(300))
    writer.amend(make_row(3, loss=7.0), user={"own": 1})
    after = before.refresh()
    assert np.isnan(before.values("loss")[3])
    assert after.values("loss")[[3, 4]].tolist() == [7.0, 1.0]
    assert after.table.equals(read_run(tmp_path).table)
    assert [note for note in after.notes if "1 row are not copied yet" in note]
    writer.close()


@pytest.mark.parametrize("roll_rows", [1, 3, 100])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([None, 1, 2, 3, 0.5, 4, 5.0, "text", 8, True], [None, "1", "2", "3", "0.5", "4", "5", "text", "8", "true"]),
        ([None, None, True, False, None, True, True, True], [None, None, True, False, None, True, True, True]),
        ([None, None, 2, 3, 4, 2**60, None], [None, None, 2, 3, 4, 2**60, None]),
        ([1, True, 2, 0.5, 7], [1.0, 1.0, 2.0, 0.5, 7.0]),
        ([None] * 5, [None] * 5),
    ],
)
def test_a_column_that_comes_late_or_changes_is_for_a_follower_what_it_is_for_a_fresh_reader(
    tmp_path: Path, make_row: MakeRow, roll_rows: int, given: list[Any], expected: list[Any]
) -> None:
    writer = RunWriter.create(tmp_path, {}, roll_rows=roll_rows)
    run = read_run(tmp_path)
    for number, value in enumerate(given):
        writer.append(make_row(number), user={"own": value})
        run = run.refreshed()
        assert run.table.schema.equals(read_run(tmp_path).table.schema)
    writer.close()
    for table in (run.refreshed().table, read_run(tmp_path).table):
        values = table["user_own"].to_pylist()
        assert values == expected
        assert list(map(type, values)) == list(map(type, expected))


def test_many_readings_leave_few_chunks(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path, {})
    run = read_run(tmp_path)
    for number in range(150):
        writer.append(make_row(number))
        run = run.refreshed()
    assert run.table["loss"].num_chunks <= 65
    assert run.table["row"].to_pylist() == list(range(150))
    writer.close()


@pytest.mark.parametrize("close", [(0, 1, 2, 3, 4), (), (1, 3)], ids=["closed", "killed", "in turn"])
@pytest.mark.parametrize("roll_rows", [1000, 4])
def test_another_run_recorded_in_its_place_is_read_from_its_start(
    tmp_path: Path, make_row: MakeRow, roll_rows: int, close: tuple[int, ...]
) -> None:
    path = tmp_path / "run"
    run = None
    for turn, length in enumerate((8, 30, 12, 12, 3)):
        shutil.rmtree(path, ignore_errors=True)
        writer = RunWriter.create(path, {"turn": turn}, roll_rows=roll_rows)
        for number in range(length):
            writer.append(make_row(number, loss=float(turn), time_ns=turn))
        writer.event("note", text=f"turn {turn}")
        if turn in close:
            writer.close()
        else:
            writer._background.shutdown()
            writer._lock.release()  # as the system does when a process dies
        run = open_run(path) if run is None else run.refresh()
        assert run.values("loss").tolist() == [float(turn)] * length
        assert [event["text"] for event in run.events] == [f"turn {turn}"]
        assert run.manifest["turn"] == turn


@pytest.mark.parametrize("length", [3, 30])
@pytest.mark.parametrize("lazily", [True, False])
def test_another_run_sealed_in_the_place_of_a_journal_is_no_later_reading_of_it(
    tmp_path: Path, make_row: MakeRow, lazily: bool, length: int
) -> None:
    path, asked = tmp_path / "run", Asked(lazily=lazily)
    with closing(RunWriter.create(tmp_path / "other", {})) as other:
        for number in range(length):
            other.append(make_row(number, time_ns=100 + number))
    with closing(RunWriter.create(path, {})) as writer:
        for number in range(8):
            writer.append(make_row(number, time_ns=number))
        first = open_run(path, asked=asked)
        path.rename(tmp_path / "gone")
        (tmp_path / "other").rename(path)
        second = first.refresh()
        assert (second.follows(first), second.unchanged_since(first)) == (False, 0)
        assert second.recorded("time_ns").all()
        assert second.table["time_ns"].to_pylist() == list(range(100, 100 + length))
        path.rename(tmp_path / "other")
        (tmp_path / "gone").rename(path)


def test_a_journal_that_is_sealed_is_the_same_run(tmp_path: Path, make_row: MakeRow) -> None:
    with closing(RunWriter.create(tmp_path / "run", {})) as writer:
        for number in range(8):
            writer.append(make_row(number, time_ns=number))
        first = open_run(tmp_path / "run")
    assert first.refresh().follows(first)


def test_an_event_is_read_once_it_is_whole(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path, {})
    writer.append(make_row(0))
    writer.event("note", text="first")
    events = tmp_path / "events.jsonl"
    data = events.read_bytes()
    run = read_run(tmp_path)
    for text in ("second", "third"):
        writer.event("note", text=text)
    more = events.read_bytes()
    events.write_bytes(more[: len(data) + 20])
    torn = run.refreshed()
    assert [event["text"] for event in torn.events] == ["first"]
    assert torn.notes == ("the last event was being written when the run ended",)
    events.write_bytes(more)
    assert [event["text"] for event in torn.refreshed().events] == ["first", "second", "third"]
    assert torn.refreshed().notes == ()
    writer.close()


def test_arrays_that_a_reading_in_between_did_not_ask_for_are_still_right(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path, {})
    for number in range(4):
        writer.append(make_row(number))
    first = open_run(tmp_path)
    first.values("loss")
    writer.amend(make_row(3, loss=9.0))
    writer.append(make_row(4))
    second = first.refresh()
    writer.append(make_row(5, loss=7.0))
    third = second.refresh()
    assert third.values("loss").tolist() == [2.0, 1.0, 2.0 / 3, 9.0, 2.0 / 5, 7.0]
    assert second.values("loss").tolist() == [2.0, 1.0, 2.0 / 3, 9.0, 2.0 / 5]
    assert first.values("loss").tolist() == [2.0, 1.0, 2.0 / 3, 0.5]
    writer.close()


def test_a_run_that_is_gone_is_one_line_and_comes_back(tmp_path: Path, make_row: MakeRow) -> None:
    path = tmp_path / "run"
    writer = RunWriter.create(path, {})
    writer.append(make_row(0))
    run = open_run(path)
    path.rename(tmp_path / "away")
    with pytest.raises(RunError, match="no such directory"):
        run.refresh()
    (tmp_path / "away").rename(path)
    assert run.refresh() is run
    writer.append(make_row(1))
    assert len(run.refresh()) == 2
    writer.close()


def test_a_row_that_is_being_written_is_no_torn_one(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path, {})
    journal = tmp_path / "steps/rank=0/_journal-000000"
    writer.append(make_row(0))
    run = read_run(tmp_path)
    kept = journal.stat().st_size
    writer.append(make_row(1, precision="fp16"), user={"own": 1})
    writer.append(make_row(2, precision="bf16"), user={"own": 2})
    data = journal.read_bytes()
    journal.write_bytes(data[: kept + 9])
    torn = run.refreshed()
    assert torn.notes == (TORN,)
    assert torn.refreshed() is torn
    journal.write_bytes(data[:-1])
    more = torn.refreshed()
    assert more.table["precision"].to_pylist() == [None, "fp16"]
    journal.write_bytes(data)
    whole = more.refreshed()
    assert whole.notes == ()
    assert whole.table.equals(read_run(tmp_path).table)
    writer.close()


def test_a_row_that_is_whole_by_the_time_it_was_looked_at_is_read(
    tmp_path: Path, make_row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = RunWriter.create(tmp_path, {})
    journal = tmp_path / "steps/rank=0/_journal-000000"
    for number in range(2):
        writer.append(make_row(number))
    data, note = journal.read_bytes(), journal_reader._note
    journal.write_bytes(data[:-5])

    def go_on(*rest: Any) -> str | None:
        journal.write_bytes(data)
        return note(*rest)

    monkeypatch.setattr(journal_reader, "_note", go_on)
    run = read_run(tmp_path)
    assert run.notes == ()
    assert run.table["row"].to_pylist() == [0, 1]
    writer.close()


def test_damage_that_comes_later_costs_what_is_behind_it(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path, {})
    journal = tmp_path / "steps/rank=0/_journal-000000"
    for number in range(3):
        writer.append(make_row(number))
    run = read_run(tmp_path)
    kept = journal.stat().st_size
    for number in range(3, 6):
        writer.append(make_row(number))
    data = bytearray(journal.read_bytes())
    data[kept + 100] ^= 1
    journal.write_bytes(data)
    after = run.refreshed()
    assert after.table.equals(run.table)
    assert f"_journal-000000 is damaged at byte {kept}" in after.notes[0]
    same(after, read_run(tmp_path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes")
def test_what_is_no_file_any_more_is_refused_and_not_waited_for(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path, {})
    writer.append(make_row(0))
    run = read_run(tmp_path)
    journal = tmp_path / "steps/rank=0/_journal-000000"
    journal.unlink()
    os.mkfifo(journal)
    with pytest.raises(StoreError, match="is a named pipe"):
        run.refreshed()
