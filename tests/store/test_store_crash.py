"""What is left after a kill, and how a run goes on from there."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recorder.store import RunWriter, read_run
from recorder.store.journal_reader import TORN

MakeRow = Callable[..., dict[str, Any]]
REPOSITORY = Path(__file__).parents[2]
KILLS = 6

RECORD = """
import sys
from recorder.store import RunWriter

writer = RunWriter.create(sys.argv[1], {}, resume=True, roll_rows=50)
number = writer.next_row
while True:
    writer.append(
        {"row": number, "segment": writer.segment, "step": number, "optimizer": "main", "loss": number / 2,
         "batch_id": f"batch {number}"},
        user={"own": number},
    )
    print(number, flush=True)
    number += 1
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is POSIX's")
def test_rows_that_ended_before_a_kill_are_all_there(tmp_path: Path) -> None:
    moments = random.Random(7)
    held = 0
    for _ in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, "-c", RECORD, str(tmp_path / "run")], stdout=subprocess.PIPE, cwd=REPOSITORY, text=True
        )
        assert process.stdout is not None
        with process.stdout as lines:
            for _ in range(moments.randint(1, 400)):
                finished = int(lines.readline())
            process.send_signal(signal.SIGKILL)
            rest = lines.read().split("\n")
        process.wait()
        finished = max([finished, *(int(line) for line in rest[:-1])])
        run = read_run(tmp_path / "run")
        rows = run.table["row"].to_pylist()
        assert rows == list(range(len(rows)))
        # A row that is journalled but not yet announced may be there too.
        assert finished + 1 <= len(rows) <= finished + 2
        assert len(rows) > held
        assert run.table["loss"].to_pylist() == [row / 2 for row in rows]
        assert run.table["batch_id"].to_pylist() == [f"batch {row}" for row in rows]
        assert run.table["user_own"].to_pylist() == rows
        held = len(rows)
    RunWriter.create(tmp_path / "run", {}, resume=True).close()
    run = read_run(tmp_path / "run")
    assert run.table["row"].to_pylist() == list(range(held))
    assert not list((tmp_path / "run/steps/rank=0").glob("_*"))
    assert run.table["segment"].to_pylist() == sorted(run.table["segment"].to_pylist())
    assert run.table["segment"].to_pylist()[-1] == KILLS - 1


def test_a_tail_torn_at_any_byte_costs_only_the_row_it_belongs_to(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path / "run", {})
    journal = tmp_path / "run/steps/rank=0/_journal-000000"
    writer.append(make_row(0), user={"own": 1})
    writer.append(make_row(1))
    whole = read_run(tmp_path / "run").table
    kept = journal.stat().st_size
    writer.append(make_row(2, precision="fp16"), user={"own": 3})
    data = journal.read_bytes()
    for size in range(kept, len(data)):
        journal.write_bytes(data[:size])
        run = read_run(tmp_path / "run")
        assert run.table.equals(whole)
        assert run.notes == (() if size == kept else (TORN,))
    journal.write_bytes(data[:kept] + bytes(len(data) - kept))
    assert read_run(tmp_path / "run").notes == (TORN,)


def test_a_journal_killed_in_its_head_holds_no_rows(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path / "run", {})
    writer.append(make_row(0))
    journal = tmp_path / "run/steps/rank=0/_journal-000000"
    data = journal.read_bytes()
    for size in (0, 3, 8, 12, 40):
        journal.write_bytes(data[:size])
        run = read_run(tmp_path / "run")
        assert run.table.num_rows == 0
        assert run.notes == ()
    writer._lock.release()  # as the system does when a process dies
    RunWriter.create(tmp_path / "run", {}, resume=True).close()
    assert list((tmp_path / "run/steps/rank=0").iterdir()) == []


def test_damage_within_a_journal_is_named_and_kept_when_the_run_goes_on(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path / "run", {})
    for number in range(10):
        writer.append(make_row(number))
    journal = tmp_path / "run/steps/rank=0/_journal-000000"
    data = bytearray(journal.read_bytes())
    data[-1500] ^= 1
    journal.write_bytes(data)
    run = read_run(tmp_path / "run")
    count = run.table.num_rows
    assert 0 < count < 9
    assert "_journal-000000 is damaged at byte" in run.notes[0]
    writer._lock.release()  # as the system does when a process dies
    again = RunWriter.create(tmp_path / "run", {}, resume=True)
    assert again.notes == run.notes
    assert again.next_row == count
    again.close()
    assert read_run(tmp_path / "run").table["row"].to_pylist() == list(range(count))
    assert (tmp_path / "run/steps/rank=0/_damaged-000000").read_bytes() == data


def test_every_moment_of_sealing_can_be_the_last(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path / "open", {})
    for number in range(5):
        writer.append(make_row(number))
    shutil.copytree(tmp_path / "open", tmp_path / "sealed")
    writer.close()
    part = (tmp_path / "open/steps/rank=0/part-000000.parquet").read_bytes()
    expected = read_run(tmp_path / "open").table
    folder = tmp_path / "sealed/steps/rank=0"
    for name, content in (("_tmp-part-000000.parquet", part[:100]), ("part-000000.parquet", part)):
        (folder / name).write_bytes(content)
        assert read_run(tmp_path / "sealed").table.equals(expected)
    RunWriter.create(tmp_path / "sealed", {}, resume=True).close()
    assert [path.name for path in folder.iterdir()] == ["part-000000.parquet"]
    assert read_run(tmp_path / "sealed").table.equals(expected)


def test_a_resumed_run_goes_on_with_its_clocks(tmp_path: Path, make_row: MakeRow) -> None:
    first = RunWriter.create(tmp_path, {"torch": "1", "seed": 3}, roll_rows=4)
    assert (first.segment, first.next_row, first.last_rows) == (0, 0, {})
    first.append(make_row(0, optimizer="rare", executed_n=7), user={"own": 1})
    for number in range(1, 10):
        first.append(make_row(number, executed_n=number))
    first.event("note", text="a")
    first.close()
    second = RunWriter.create(tmp_path, {"torch": "2"}, resume=True)
    assert (second.segment, second.next_row) == (1, 10)
    assert sorted(second.last_rows) == ["main", "rare"]
    assert second.last_rows["rare"]["executed_n"] == 7
    assert second.last_rows["main"]["executed_n"] == 9
    assert "user_own" not in second.last_rows["rare"]
    assert read_run(tmp_path).manifest["closed"] is False
    second.append(second.last_rows["main"] | {"row": 10, "segment": 1, "step": 4})
    second.event("resume")
    second.close()
    run = read_run(tmp_path)
    assert run.table["row"].to_pylist() == list(range(11))
    assert run.table["step"].to_pylist() == [*range(10), 4]
    assert run.table["segment"].to_pylist() == [0] * 10 + [1]
    assert [event["kind"] for event in run.events] == ["note", "resume"]
    assert (run.manifest["torch"], run.manifest["seed"]) == ("2", 3)


def test_resuming_where_nothing_is_starts_a_run(tmp_path: Path, make_row: MakeRow) -> None:
    for path in (tmp_path / "new", tmp_path / "new"):  # the second time it holds a run without rows
        writer = RunWriter.create(path, {}, resume=True)
        assert (writer.segment, writer.next_row) == (0, 0)
        writer.close()


def test_a_torn_event_is_dropped_and_the_next_starts_its_own_line(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, {})
    writer.event("validation", loss=float("nan"), bounds=[float("inf"), -float("inf")])
    writer.event("note", text="two\nlines")
    events = tmp_path / "events.jsonl"
    events.write_bytes(events.read_bytes() + b'{"kind": "no')
    run = read_run(tmp_path)
    assert [event["kind"] for event in run.events] == ["validation", "note"]
    assert run.events[0]["loss"] == "nan"
    assert run.events[0]["bounds"] == ["inf", "-inf"]
    assert run.events[0]["time_ns"] > 1_600_000_000_000_000_000
    assert run.notes == ("the last event was being written when the run ended",)
    writer._lock.release()  # as the system does when a process dies
    again = RunWriter.create(tmp_path, {}, resume=True)
    again.event("resume")
    again.close()
    run = read_run(tmp_path)
    assert [event["kind"] for event in run.events] == ["validation", "note", "resume"]
    assert run.notes == ()


def test_the_manifest_is_plain_json_and_merges(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, {"lr": float("inf"), "path": Path("data"), "betas": (0.9, 0.99), 3: None})
    writer.update_manifest(world_size=2)
    text = (tmp_path / "run.json").read_text()
    manifest = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert manifest == {
        "lr": "inf",
        "path": "data",
        "betas": [0.9, 0.99],
        "3": None,
        "schema_version": 1,
        "closed": False,
        "world_size": 2,
    }
    writer.close()
    assert json.loads((tmp_path / "run.json").read_text())["closed"] is True


def test_a_closed_run_takes_no_more_rows(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path, {})
    writer.append(make_row(0))
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        writer.append(make_row(1))
    assert read_run(tmp_path).table.num_rows == 1


def test_ranks_are_written_side_by_side(tmp_path: Path, make_row: MakeRow) -> None:
    for rank in (0, 1):
        writer = RunWriter.create(tmp_path, {"world_size": 2}, rank=rank)
        writer.append(make_row(rank))
        writer.event("note", rank=rank)
        writer.close()
    for rank in (0, 1):
        run = read_run(tmp_path, rank=rank)
        assert run.table["row"].to_pylist() == [rank]
        assert [event["rank"] for event in run.events] == [rank]
