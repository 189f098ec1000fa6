"""`python -m recorder verify` and `repair` on whole, dead, live and damaged runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from recorder.__main__ import main
from recorder.store import RunWriter, read_run

MakeRow = Callable[..., dict[str, Any]]
STEPS = "steps/rank=0"


def command(name: str, run: Path, *options: str) -> tuple[int, str]:
    """Exit status and output, the run's path in it left out."""
    result = CliRunner().invoke(main, [name, str(run), *options])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, result.output.replace(str(run), "RUN").rstrip("\n")


def written(run: Path, make_row: MakeRow, rows: int = 25, rank: int = 0, dies: bool = False) -> Path:
    writer = RunWriter.create(run, {"world_size": 2}, rank=rank, roll_rows=10)
    for number in range(rows):
        writer.append(make_row(number), user={"own": number})
    writer.append_layers([{"row": 3, "optimizer": "main", "name": "weight", "grad_norm": 1.0}])
    writer.event("note", text="one")
    if dies:
        writer._background.shutdown(wait=True)
        writer._lock.release()  # as the system does when a process dies
    else:
        writer.close()
    return run


def test_a_closed_run_is_whole_and_nothing_is_left_to_repair(tmp_path: Path, make_row: MakeRow) -> None:
    run = written(tmp_path / "run", make_row)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    whole = "RUN: whole\n  rank 0: 25 rows, 1 row of layers and 1 event, in 4 parts"
    assert command("verify", run) == (0, whole)
    assert command("repair", run) == (0, "RUN: nothing to repair")
    assert command("verify", run, "--rank", "0") == (0, whole)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_dead_run_is_whole_and_is_sealed_once(tmp_path: Path, make_row: MakeRow) -> None:
    run = written(tmp_path / "run", make_row, dies=True)
    rows = read_run(run).table
    status, text = command("verify", run)
    assert status == 0
    assert text.splitlines() == [
        "RUN: whole, and was not closed",
        "  rank 0: 25 rows, 1 row of layers and 1 event, in 2 parts and 2 journals",
        "    2 journals not sealed: `python -m recorder repair` does it",
    ]
    status, text = command("repair", run)
    assert status == 0
    assert text.splitlines() == [
        "RUN: repaired",
        "  rank 0:",
        "    steps: sealed 5 rows as part-000002.parquet",
        "    layers: sealed 1 row as part-000000.parquet",
    ]
    assert command("repair", run) == (0, "RUN: nothing to repair")
    assert command("verify", run)[0] == 0
    assert not list(run.rglob("_*"))
    assert read_run(run).table.equals(rows)
    RunWriter.create(run, {}, resume=True).close()


def test_what_a_kill_left_unfinished_is_named_and_dropped(tmp_path: Path, make_row: MakeRow) -> None:
    run = written(tmp_path / "run", make_row, dies=True)
    journal, events = run / STEPS / "_journal-000002", run / "events.jsonl"
    journal.write_bytes(journal.read_bytes()[:-30])
    events.write_bytes(events.read_bytes() + b'{"kind": "no')
    (run / STEPS / "_tmp-part-000002.parquet").write_bytes(b"PAR1")
    (run / "_tmp-run.json").write_text("{")
    for name in ("_tmp-row-000007", "_tmp-row-000007-rank=1"):
        (run / "captures" / name).mkdir(parents=True)
        (run / "captures" / name / "tensors.safetensors").write_bytes(b"")
    status, text = command("verify", run)
    assert status == 1
    assert text.splitlines()[2:] == [
        "    ! _journal-000002: the last row was being written when the run ended",
        "    ! the last event was being written when the run ended",
        "    1 unfinished file of steps left by a crash",
        "    2 journals not sealed: `python -m recorder repair` does it",
        "    1 capture never finished: `python -m recorder repair` removes it",
    ]
    status, text = command("repair", run)
    assert status == 1
    assert text.splitlines()[2:] == [
        "    steps: removed _tmp-part-000002.parquet, which was never finished",
        "    steps: sealed 4 rows as part-000002.parquet",
        "    layers: sealed 1 row as part-000000.parquet",
        "    captures: removed _tmp-row-000007, which was never finished",
        "    removed _tmp-run.json, which was never finished",
        "    ! left out: steps: the last row was being written when the run ended",
        "    ! left out: the last event, which was being written when the run ended",
    ]
    assert command("repair", run) == (0, "RUN: nothing to repair")
    assert command("verify", run)[0] == 0
    assert [path.name for path in (run / "captures").iterdir()] == ["_tmp-row-000007-rank=1"]  # that rank's own
    assert read_run(run).table["row"].to_pylist() == list(range(24))


def damage(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 0xFF
    path.write_bytes(data)


def data_byte(part: Path, column: str) -> int:
    """The place of a byte of this column's data."""
    group = pq.ParquetFile(part).metadata.row_group(0)
    [found] = [c for i in range(group.num_columns) if (c := group.column(i)).path_in_schema == column]
    return int(found.data_page_offset + found.total_compressed_size - 2)


def rewrite(part: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(part, partitioning=None)), part)


def test_each_kind_of_damage_is_named(tmp_path: Path, make_row: MakeRow) -> None:
    part, layers, last = (
        f"{STEPS}/part-000001.parquet",
        "layers/rank=0/part-000000.parquet",
        f"{STEPS}/part-000002.parquet",
    )
    later = pa.array([1] * 10, pa.int32())

    def rows(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
        return lambda run: rewrite(run / part, change)

    kinds: list[tuple[Callable[[Path], Any], str]] = [
        (lambda run: damage(run / part, data_byte(run / part, "loss")), f"{part}: is damaged"),
        (lambda run: (run / part).write_bytes((run / part).read_bytes()[:-9]), f"{part}: is damaged or truncated"),
        (lambda run: (run / part).unlink(), "part 1 of steps is missing"),
        (lambda run: (run / part).unlink(), "10 rows missing: 10 to 19"),
        (lambda run: (run / last).unlink(), "rows 20 to 24 are missing: the run was closed with them"),
        (rows(lambda t: pa.concat_tables([t.slice(0, 3), t.slice(5)])), "2 rows missing: 13 to 14"),
        (rows(lambda t: pa.concat_tables([t, t.slice(4, 2)])), "recorded twice: row 14 of main, and 1 more"),
        (rows(lambda t: pa.concat_tables([t.slice(5), t.slice(0, 5)])), "out of order: row 10 comes after row 19"),
        (rows(lambda t: t.set_column(1, "segment", later)), "segment 0 comes after segment 1 at row 20"),
        (rows(lambda t: t.drop_columns(["optimizer"])), f"{part}: lacks the columns optimizer"),
        (lambda run: (run / layers).write_bytes(b""), f"{layers}: is damaged"),
        (lambda run: (run / "events.jsonl").write_bytes(b"nonsense\n"), "1 damaged lines of events.jsonl"),
    ]
    for place, (break_it, says) in enumerate(kinds):
        run = written(tmp_path / f"{place}", make_row)
        break_it(run)
        status, text = command("verify", run)
        assert status == 1
        assert text.startswith("RUN: not whole\n")
        assert f"    ! {says}" in text, text
        before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
        assert command("repair", run) == (0, "RUN: nothing to repair")
        assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_rows_that_a_damaged_journal_hides_are_set_aside_for_whoever_can_read_them(
    tmp_path: Path, make_row: MakeRow
) -> None:
    run = written(tmp_path / "run", make_row, dies=True)
    journal = run / STEPS / "_journal-000002"
    damage(journal, len(journal.read_bytes()) - 900)
    hidden = journal.read_bytes()
    assert "! _journal-000002 is damaged at byte" in command("verify", run)[1]
    status, text = command("repair", run)
    assert status == 1
    assert "! left out: steps: _journal-000002 is damaged at byte" in text
    status, text = command("verify", run)
    assert status == 1
    assert "! _damaged-000002 of steps holds rows that could not be read" in text
    assert (run / STEPS / "_damaged-000002").read_bytes() == hidden
    assert command("repair", run) == (0, "RUN: nothing to repair")


def test_a_journal_that_cannot_be_read_at_all_does_not_keep_the_others_from_being_sealed(
    tmp_path: Path, make_row: MakeRow
) -> None:
    run = written(tmp_path / "run", make_row, dies=True)
    (run / STEPS / "_journal-000003").write_bytes(b"something else entirely")
    status, text = command("repair", run)
    assert status == 1
    assert "steps: sealed 5 rows as part-000002.parquet" in text
    assert "! left out: steps/rank=0/_journal-000003: is not a journal" in text
    assert command("verify", run)[0] == 1
    assert (run / STEPS / "_journal-000003").exists()


def test_rows_without_the_values_of_a_device_are_counted(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path / "run", {})
    for number in range(3):
        writer.append(make_row(number, loss=None), pending=number > 0)
    assert command("verify", tmp_path / "run")[0] == 0  # they may still come
    writer.close()
    status, text = command("verify", tmp_path / "run")
    assert status == 1
    assert "! 2 rows without the values that the device still held" in text


LIVE = """
import sys
from recorder.store import RunWriter
writer = RunWriter.create(sys.argv[1], {}, roll_rows=10)
for row in range(25):
    writer.append({"row": row, "segment": 0, "optimizer": "main"})
print("recording", flush=True)
sys.stdin.read()
writer.append({"row": 25, "segment": 0, "optimizer": "main"})
writer.close()
"""


def test_a_live_run_is_told_so_and_left_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with subprocess.Popen(
        [sys.executable, "-c", LIVE, str(run)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "recording\n"
        status, text = command("verify", run)
        assert (status, text.splitlines()[0]) == (0, "RUN: whole so far, and being recorded")
        status, text = command("repair", run)
        assert (status, text) == (
            2,
            "recorder: RUN: rank 0 of it is being recorded; repair it when the recording is over",
        )
        other.communicate()
        assert other.returncode == 0
    assert command("verify", run)[0] == 0
    assert read_run(run).table["row"].to_pylist() == list(range(26))


def test_a_writer_of_this_process_is_live_and_stays_it(tmp_path: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(tmp_path / "run", {})
    writer.append(make_row(0))
    assert "being recorded" in command("verify", tmp_path / "run")[1]
    assert command("repair", tmp_path / "run")[0] == 2
    refused = subprocess.run(
        [sys.executable, "-c", LIVE, str(tmp_path / "run")], capture_output=True, text=True, check=False
    )
    assert "holds a run already" in refused.stderr
    assert "being recorded" in command("verify", tmp_path / "run")[1]
    writer.close()


def test_each_rank_is_looked_at_and_many_whole_ones_take_one_line(tmp_path: Path, make_row: MakeRow) -> None:
    run = tmp_path / "run"
    for rank in range(12):
        written(run, make_row, rows=rank, rank=rank, dies=rank == 7)
    (run / "steps/rank=11/part-000000.parquet").unlink()
    status, text = command("verify", run)
    assert status == 1
    assert text.splitlines()[:4] == [
        "RUN: not whole",
        "  10 ranks are whole, with 48 rows, 10 rows of layers and 10 events, in 19 parts",
        "  rank 7: 7 rows, 1 row of layers and 1 event, in 2 journals",
        "    2 journals not sealed: `python -m recorder repair` does it",
    ]
    assert "part 0 of steps is missing" in text
    assert command("verify", run, "--rank", "11")[0] == 1
    assert command("verify", run, "--rank", "7")[0] == 0
    assert command("repair", run, "--rank", "3") == (0, "RUN: nothing to repair")
    assert "sealed 7 rows" in command("repair", run)[1]
    assert command("verify", run, "--rank", "12") == (
        2,
        "recorder: RUN: holds no rank 12; leave --rank out to see those that it holds",
    )


@pytest.mark.parametrize("name", ["verify", "repair"])
def test_what_is_no_run_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    for path, says in (("missing", "no such directory"), ("empty", "is an empty directory")):
        status, text = command(name, tmp_path / path)
        assert status == 2
        assert text.startswith("recorder: RUN: ") and says in text
        assert "\n" not in text


def test_a_name_out_of_a_run_cannot_command_the_terminal(tmp_path: Path, make_row: MakeRow) -> None:
    run = written(tmp_path / "run", lambda number: make_row(number, optimizer="\x1b[2J"))
    rewrite(run / STEPS / "part-000001.parquet", lambda table: pa.concat_tables([table, table.slice(9)]))
    text = command("verify", run)[1]
    assert "recorded twice: row 19 of \\x1b[2J" in text
    assert "\x1b" not in text
