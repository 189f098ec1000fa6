"""A run that begins where another one ended before its first row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recorder.store import RunWriter, StoreError, read_run

MakeRow = Callable[..., dict[str, Any]]
STEPS = "steps/rank=0"


def died(writer: RunWriter) -> None:
    """What the system does for a process that ends without a word."""
    writer._background.shutdown(wait=True)
    writer._lock.release()


def closed(run: Path, make_row: MakeRow) -> None:
    RunWriter.create(run, {"config": "first"}).close()


def killed(run: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(run, {"config": "first"})
    writer.event("note", text="of the first attempt")
    died(writer)


def killed_in_its_first_row(run: Path, make_row: MakeRow) -> None:
    writer = RunWriter.create(run, {"config": "first"})
    writer.append(make_row(0))
    died(writer)
    journal = run / STEPS / "_journal-000000"
    journal.write_bytes(journal.read_bytes()[:-1])


def killed_before_its_manifest(run: Path, make_row: MakeRow) -> None:
    (run / STEPS).mkdir(parents=True)


@pytest.mark.parametrize("ending", [closed, killed, killed_in_its_first_row, killed_before_its_manifest])
@pytest.mark.parametrize("resume", [False, True])
def test_a_run_that_ended_before_its_first_row_is_begun_again(
    tmp_path: Path, make_row: MakeRow, ending: Callable[[Path, MakeRow], None], resume: bool
) -> None:
    run = tmp_path / "run"
    ending(run, make_row)
    writer = RunWriter.create(run, {"config": "second"}, resume=resume)
    assert (writer.segment, writer.next_row, writer.last_rows) == (0, 0, {})
    writer.append(make_row(0))
    writer.close()
    stored = read_run(run)
    assert stored.table["row"].to_pylist() == [0]
    assert stored.manifest["config"] == "second"
    assert stored.notes == ()
    if not resume:
        assert stored.events == ()
    with pytest.raises(StoreError, match="holds a run already"):
        RunWriter.create(run, {})


def test_each_rank_begins_again(tmp_path: Path, make_row: MakeRow) -> None:
    run = tmp_path / "run"
    for rank in (0, 1):
        writer = RunWriter.create(run, {}, rank=rank)
        writer.event("note", text="of the first attempt")
        died(writer)
    for rank in (1, 0):
        writer = RunWriter.create(run, {}, rank=rank)
        died(writer)
    assert [read_run(run, rank=rank).events for rank in (0, 1)] == [(), ()]


def test_rows_of_another_rank_are_a_run(tmp_path: Path, make_row: MakeRow) -> None:
    run = tmp_path / "run"
    died(RunWriter.create(run, {"config": "first"}))
    writer = RunWriter.create(run, {}, rank=1)
    writer.append(make_row(0))
    died(writer)
    with pytest.raises(StoreError, match="holds a run already"):
        RunWriter.create(run, {"config": "second"})
    assert read_run(run, rank=1).manifest["config"] == "first"


def test_rank_0_may_be_the_last_that_begins_again(tmp_path: Path, make_row: MakeRow) -> None:
    run = tmp_path / "run"
    died(RunWriter.create(run, {"config": "first"}))
    quicker = RunWriter.create(run, {}, rank=1)
    quicker.append(make_row(0))
    writer = RunWriter.create(run, {"config": "second"})
    writer.append(make_row(0))
    for each in (writer, quicker):
        each.close()
    assert [read_run(run, rank=rank).table.num_rows for rank in (0, 1)] == [1, 1]
    assert read_run(run).manifest["config"] == "second"


def test_what_may_hold_rows_is_never_dropped(tmp_path: Path, make_row: MakeRow) -> None:
    for name, path in (("capture", "captures/row-000000/capture.json"), ("damage", f"{STEPS}/_journal-000000")):
        run = tmp_path / name
        died(RunWriter.create(run, {}))
        (run / path).parent.mkdir(parents=True, exist_ok=True)
        (run / path).write_text("something else entirely")
        with pytest.raises(StoreError, match="holds a run already"):
            RunWriter.create(run, {})
        assert (run / path).read_text() == "something else entirely"


def test_a_manifest_of_somebody_elses_is_left(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"name": "of another tool"}')
    with pytest.raises(StoreError, match="the recorder did not write it"):
        RunWriter.create(tmp_path, {})
    assert (tmp_path / "run.json").read_text() == '{"name": "of another tool"}'


def test_a_writer_without_a_row_keeps_another_out(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run", {})
    with pytest.raises(StoreError, match="is being recorded"):
        RunWriter.create(tmp_path / "run", {})
    writer.close()


def test_a_rank_begins_while_another_makes_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, stat = tmp_path / "run", Path.stat

    def stat_too_early(path: Path, **how: Any) -> Any:
        try:
            return stat(path, **how)
        except FileNotFoundError:
            if path == run:
                path.mkdir()  # the other rank, between two looks at the path
            raise

    monkeypatch.setattr(Path, "stat", stat_too_early)
    RunWriter.create(run, {}, rank=2).close()
