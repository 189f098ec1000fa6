"""A disk that is full, read-only or gone: training goes on, nothing that was written is lost, recording resumes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recorder.store import RunWriter, StoreError, append_file, files, folder, parts, read_run, table

MakeRow = Callable[..., dict[str, Any]]
REPOSITORY = Path(__file__).parents[2]
ON_A_SMALL_DISK = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=4m tmpfs "$0" && exec "$@"']

FULL_DISK = """
import json, os, sys, warnings
import torch
from recorder import FlightRecorder
from recorder.store import read_run, table

table.LOOK_NS = 50_000_000
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
run, step = sys.argv[1] + "/run", 0

def train(until):
    global step
    first = step
    while step - first < 10_000 and not until():
        with recorder.transition(batch_id=step) as t:
            loss = model(torch.ones(2, 4)).square().mean()
            t.observe_loss(loss)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        step += 1

def told():
    return [event for event in read_run(run).events if event["kind"] == "recording_resumed"]

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    recorder = FlightRecorder(run, model, optimizer, deep_every=0)
    train(lambda: step == 50)
    with open(sys.argv[1] + "/ballast", "wb", 0) as ballast:
        try:
            while ballast.write(bytes(4096)):
                pass
        except OSError:
            pass  # full
    train(lambda: len(caught) > 0)
    full_at = read_run(run).table.num_rows
    train(lambda: step >= full_at + 300)
    while_full = read_run(run).table["row"].to_pylist()
    notes = read_run(run).notes
    os.remove(sys.argv[1] + "/ballast")
    freed_at = step
    train(lambda: step % 100 == 0 and told())
    recorder.close()
stored = read_run(run)
print(json.dumps({
    "full_at": full_at, "freed_at": freed_at, "steps": step, "while_full": while_full, "notes": notes,
    "rows": stored.table["row"].to_pylist(), "batches": stored.table["batch_id"].to_pylist(), "resumed": told(),
    "faults": [event["text"] for event in stored.events if event["kind"] == "recorder_fault"],
    "closed": stored.manifest["closed"], "warnings": [str(warning.message) for warning in caught],
}))
"""


def can_mount() -> bool:
    try:
        done = subprocess.run([*ON_A_SMALL_DISK, "/mnt", "true"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def run_python(script: str, *arguments: str, before: list[str] | None = None) -> dict[str, Any]:
    command = [*(before or []), sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_on_a_full_disk_training_goes_on_and_recording_resumes(tmp_path: Path) -> None:
    if not can_mount():
        pytest.skip("needs unshare and a user namespace in which it may mount")
    found = run_python(FULL_DISK, str(tmp_path), before=[*ON_A_SMALL_DISK, str(tmp_path)])
    assert found["while_full"] == list(range(found["full_at"]))
    assert found["notes"] == []
    assert found["full_at"] < found["freed_at"] < found["steps"]
    assert len(found["warnings"]) == 1
    assert "No space left on device" in found["warnings"][0]
    assert "No space left on device" in found["faults"][0]
    assert found["closed"] is True
    [resumed] = found["resumed"]
    assert (resumed["table"], resumed["lost"]) == ("steps", 0)
    assert found["rows"] == list(range(found["steps"]))
    assert found["batches"] == [str(row) for row in found["rows"]]


class Disk:
    """Stands in for `os.write` and takes `room` bytes more, as a full disk does: a part of the last record, too."""

    def __init__(self) -> None:
        self.room = sys.maxsize
        self._write = os.write

    def __call__(self, fd: int, data: bytes) -> int:
        if self.room == 0:
            raise OSError(28, "No space left on device")
        written = self._write(fd, data[: self.room])
        self.room -= written
        return written


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    found = Disk()
    monkeypatch.setattr(append_file.os, "write", found)
    monkeypatch.setattr(append_file, "RETRY_NS", 0)
    monkeypatch.setattr(table, "LOOK_NS", 0)
    return found


def test_a_record_that_cannot_be_written_in_full_leaves_no_trace(tmp_path: Path, make_row: MakeRow, disk: Disk) -> None:
    writer = RunWriter.create(tmp_path, {})
    writer.append(make_row(0))
    disk.room = 100
    writer.append(make_row(1, precision="fp16"))
    run = read_run(tmp_path)
    assert (run.table["row"].to_pylist(), run.notes) == ([0], ())
    disk.room = sys.maxsize
    writer.append(make_row(2, precision="bf16"))
    live = read_run(tmp_path)
    assert live.notes == ()
    assert live.table["precision"].to_pylist() == [None, "fp16", "bf16"]
    writer.close()
    assert read_run(tmp_path).table.equals(live.table)


def test_rows_beyond_what_may_wait_are_counted_and_told(
    tmp_path: Path, make_row: MakeRow, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append_file, "MOST_WAITING", 2000)
    told: list[str] = []
    writer = RunWriter.create(tmp_path, {}, on_error=lambda error: told.append(str(error)))
    writer.append(make_row(0))
    disk.room = 0
    refused = []
    for number in range(1, 20):
        try:
            writer.append(make_row(number))
        except OSError:
            refused.append(number)
    assert refused == list(range(refused[0], 20))
    assert set(told) == {"[Errno 28] No space left on device"}
    with pytest.raises(OSError, match="No space left"):
        writer.flush()
    disk.room = sys.maxsize
    for number in range(20, 25):
        writer.append(make_row(number))
    writer.flush()
    run = read_run(tmp_path)
    assert run.table["row"].to_pylist() == [number for number in range(25) if number not in refused]
    [event] = run.events
    assert (event["kind"], event["table"]) == ("recording_resumed", "steps")
    assert (event["lost"], event["first_row"], event["last_row"]) == (len(refused), refused[0], 19)
    writer.close()
    assert read_run(tmp_path).table["batch_id"].to_pylist() == run.table["batch_id"].to_pylist()
    assert len(read_run(tmp_path).events) == 1


def test_close_on_a_full_disk_says_which_rows_it_could_not_write(
    tmp_path: Path, make_row: MakeRow, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    writer = RunWriter.create(tmp_path, {})
    for number in range(3):
        writer.append(make_row(number))
    disk.room = 0
    for number in range(3, 10):
        writer.append(make_row(number))
    monkeypatch.setattr(folder, "write_part", full)
    with pytest.raises(StoreError, match=r"No space left.*the last 7 rows could not be written and are lost"):
        writer.close()
    run = read_run(tmp_path)
    assert run.table["row"].to_pylist() == [0, 1, 2]
    assert run.manifest["closed"] is False


def test_a_limit_on_the_size_of_a_file_is_met_with_further_files(tmp_path: Path) -> None:
    script = """
import json, resource, sys
from recorder.store import RunWriter, table
table.LOOK_NS = 0
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
told = []
writer = RunWriter.create(sys.argv[1], {}, on_error=lambda error: told.append(str(error)))
for number in range(1000):
    writer.append({"row": number, "optimizer": "main", "batch_id": f"batch {number}"})
writer.close()
print(json.dumps(told))
"""
    told = run_python(script, str(tmp_path))
    assert set(told) == {"[Errno 27] File too large"}
    run = read_run(tmp_path)
    assert run.table["row"].to_pylist() == list(range(1000))
    assert run.table["batch_id"].to_pylist() == [f"batch {number}" for number in range(1000)]
    assert run.notes == ()


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_directory_that_becomes_read_only_costs_no_row(tmp_path: Path) -> None:
    script = """
import json, os, sys
from recorder.store import RunWriter, read_run, table
os.chdir(sys.argv[1])
RunWriter.create("warm", {}).close()
read_run("warm")  # so that nothing is left to import, which the other user may not
if os.getuid() == 0:  # whom no permission stops
    os.setgid(65534)
    os.setuid(65534)
table.LOOK_NS = 0
told = []
writer = RunWriter.create("run", {}, roll_rows=10, on_error=lambda error: told.append(str(error)))
for number in range(50):
    if number in (25, 45):
        os.chmod("run/steps/rank=0", 0o555 if number == 25 else 0o755)
    writer.append({"row": number, "optimizer": "main"})
    if number == 44:
        live = read_run("run").table["row"].to_pylist()
writer.close()
print(json.dumps({"told": told, "live": live}))
"""
    tmp_path.chmod(0o777)
    found = run_python(script, str(tmp_path))
    assert found["live"] == list(range(45))
    assert found["told"] and all("Permission denied" in text for text in found["told"])
    run = read_run(tmp_path / "run")
    assert run.table["row"].to_pylist() == list(range(50))
    assert not list((tmp_path / "run/steps/rank=0").glob("_*"))


def test_a_deleted_directory_is_made_anew_and_says_what_is_not_in_it(
    tmp_path: Path, make_row: MakeRow, disk: Disk
) -> None:
    told: list[str] = []
    run = tmp_path / "run"
    writer = RunWriter.create(run, {"seed": 3}, roll_rows=10, on_error=lambda error: told.append(str(error)))
    for number in range(25):
        writer.append(make_row(number))
    writer._background.submit(lambda: None).result()  # two parts are sealed
    delete(run)
    for number in range(25, 43):
        writer.append(make_row(number))
    writer.event("note", text="later")
    with pytest.raises(StoreError, match="being recorded by this process"):
        RunWriter.create(run, {}, resume=True)
    writer.close()
    again = read_run(run)
    assert again.table["row"].to_pylist() == list(range(20, 43))
    assert again.notes == ("parts 0 to 1 of steps are missing: their rows are left out",)
    assert (again.manifest["seed"], again.manifest["closed"]) == (3, True)
    resumed, note = again.events
    assert (resumed["kind"], resumed["first_row"], resumed["last_row"]) == ("recording_resumed", 0, 19)
    assert resumed["text"].endswith("was made anew: rows 0 to 19 are not in it")
    assert note["text"] == "later"
    assert told and all("was deleted" in text for text in told)
    RunWriter.create(run, {}, resume=True).close()


def test_a_directory_that_cannot_be_made_anew_at_once_is_waited_for(
    tmp_path: Path, make_row: MakeRow, disk: Disk
) -> None:
    run = tmp_path / "run"
    writer = RunWriter.create(run, {}, roll_rows=10)
    for number in range(5):
        writer.append(make_row(number))
    delete(run)
    run.write_text("in the way")
    for number in range(5, 30):
        writer.append(make_row(number))
    assert run.read_text() == "in the way"
    run.unlink()
    for number in range(30, 33):
        writer.append(make_row(number))
    writer.close()
    found = read_run(run)
    assert found.table["row"].to_pylist() == list(range(33))
    assert found.notes == ()
    assert [event["text"].split(": ")[1] for event in found.events] == ["no row is missing"]


def test_rows_that_only_memory_could_hold_are_bounded_and_counted(
    tmp_path: Path, make_row: MakeRow, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "MOST_ROWS", 12)
    run = tmp_path / "run"
    writer = RunWriter.create(run, {}, roll_rows=10)
    for number in range(5):
        writer.append(make_row(number))
    delete(run)
    run.write_text("in the way")
    refused = []
    for number in range(5, 20):
        try:
            writer.append(make_row(number))
        except OSError:
            refused.append(number)
    assert refused == list(range(12, 20))
    run.unlink()
    writer.append(make_row(20))
    writer.append(make_row(21))
    writer.close()
    found = read_run(run)
    assert found.table["row"].to_pylist() == [*range(12), 20, 21]
    [_, lost] = found.events
    assert (lost["lost"], lost["first_row"], lost["last_row"]) == (8, 12, 19)


def test_a_journal_that_cannot_be_rolled_does_not_grow_in_memory(
    tmp_path: Path, make_row: MakeRow, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(table, "MOST_ROWS", 12)
    writer = RunWriter.create(tmp_path, {}, roll_rows=10)
    writer.append(make_row(0))
    with monkeypatch.context() as patch:
        patch.setattr(table, "create_journal", read_only)
        for number in range(1, 30):
            writer.append(make_row(number, precision=f"type {number % 3}"), user={"own": number})
    assert writer._steps._journal is not None and writer._steps._journal.rows is None
    live = read_run(tmp_path).table
    for number in range(30, 45):
        writer.append(make_row(number))
    writer.close()
    found = read_run(tmp_path)
    assert found.table["row"].to_pylist() == list(range(45))
    assert found.table.slice(0, 30).equals(live)
    assert not list((tmp_path / "steps/rank=0").glob("_*"))


def test_a_journal_of_huge_texts_is_rolled_by_its_size(
    tmp_path: Path, make_row: MakeRow, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "MOST_BYTES", 100_000)
    writer = RunWriter.create(tmp_path, {})
    for number in range(20):
        writer.append(make_row(number, batch_id=f"{number}" * 10_000))
    writer.close()
    assert len(list((tmp_path / "steps/rank=0").glob("part-*"))) > 1
    assert read_run(tmp_path).table["batch_id"].to_pylist() == [f"{number}" * 10_000 for number in range(20)]


OTHER_RUN = """
import sys
from recorder.store import RunWriter
writer = RunWriter.create(sys.argv[1], {"created": "later"})
for row in range(3):
    writer.append({"row": row, "optimizer": "other"})
print("recording", flush=True)
if sys.argv[2] == "alive":
    sys.stdin.read()
writer.close()
"""


@pytest.mark.parametrize("other", ["alive", "over"])
def test_another_run_in_the_place_of_a_deleted_one_is_left_alone(
    tmp_path: Path, make_row: MakeRow, disk: Disk, other: str
) -> None:
    told: list[str] = []
    run = tmp_path / "run"
    writer = RunWriter.create(run, {"created": "earlier"}, roll_rows=2, on_error=lambda error: told.append(str(error)))
    writer.append(make_row(0))
    delete(run)
    command = [sys.executable, "-c", OTHER_RUN, str(run), other]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "recording\n"
        if other == "over":
            process.communicate()
        before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
        for number in range(1, 20):
            writer.append(make_row(number))
        with pytest.raises((OSError, StoreError)):
            writer.append_layers([{"row": 1, "optimizer": "main", "name": "weight"}])
        with pytest.raises(StoreError, match="holds another run now"):
            writer.close()
        assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    assert "holds another run now" in told[-1]
    assert read_run(run).table["optimizer"].to_pylist() == ["other"] * 3


def test_the_journal_is_dropped_only_when_its_part_is_in_place(
    tmp_path: Path, make_row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step of sealing fails once; what lies on the disk at that moment is kept, as a crash would leave it."""
    run, moments = tmp_path / "run", []

    def failing_once(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any, **settings: Any) -> Any:
            if name in moments:
                return original(*given, **settings)
            moments.append(name)
            shutil.copytree(run, tmp_path / name)
            raise OSError(5, f"Input/output error in {name}")

        return step

    writer = RunWriter.create(run, {})
    for number in range(5):
        writer.append(make_row(number))
    expected = read_run(run).table
    monkeypatch.setattr(parts.pq, "write_table", failing_once("write", parts.pq.write_table))
    monkeypatch.setattr(os, "fsync", failing_once("sync", os.fsync))
    monkeypatch.setattr(Path, "replace", failing_once("rename", Path.replace))
    monkeypatch.setattr(files, "sync_directory", failing_once("sync directory", files.sync_directory))
    monkeypatch.setattr(folder, "_drop", failing_once("drop", folder._drop))
    for name in ("write", "sync", "rename", "sync directory", "drop"):
        with pytest.raises(StoreError, match=f"error in {name}"):
            writer.close() if name == "write" else RunWriter.create(run, {}, resume=True)
        assert read_run(run).table.equals(expected)
    RunWriter.create(run, {}, resume=True).close()
    assert moments == ["write", "sync", "rename", "sync directory", "drop"]
    for name in moments:
        names = {path.name for path in (tmp_path / name / "steps/rank=0").iterdir()}
        assert "_journal-000000" in names
        assert ("part-000000.parquet" in names) == (name in ("sync directory", "drop"))
    for place in (run, *(tmp_path / name for name in moments)):
        assert read_run(place).table.equals(expected)
        RunWriter.create(place, {}, resume=True).close()
        assert [path.name for path in (place / "steps/rank=0").iterdir()] == ["part-000000.parquet"]
        assert read_run(place).table.equals(expected)


def test_a_training_whose_run_is_deleted_is_warned_once_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from recorder import FlightRecorder

    monkeypatch.setattr(table, "LOOK_NS", 0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train(recorder: FlightRecorder) -> None:
        for step in range(8):
            if step == 4:
                delete(tmp_path / "run")
            with recorder.transition(batch_id=step) as t:
                loss = model(torch.ones(2, 4)).square().mean()
                t.observe_loss(loss)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        recorder.close()

    with pytest.warns(RuntimeWarning) as caught:
        train(FlightRecorder(tmp_path / "run", model, optimizer, deep_every=1))
    assert len(caught) == 1
    run = read_run(tmp_path / "run")
    assert run.table["batch_id"].to_pylist() == [str(step) for step in range(8)]
    assert set(run.layers["row"].to_pylist()) == set(range(8))
    assert run.manifest["model"]["class"] == "Linear"
    assert "recording_resumed" in [event["kind"] for event in run.events]


def delete(run: Path) -> None:
    """Again, where the writer put a file there meanwhile."""
    while run.exists():
        shutil.rmtree(run, ignore_errors=True)
