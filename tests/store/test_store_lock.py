"""One writer at a time: a live one is not disturbed, a dead one's place is taken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from recorder.store import RunWriter, StoreError, read_run

ROW = {"row": 0, "optimizer": "optimizer"}

OTHER = """
import sys
from recorder.store import RunWriter
writer = RunWriter.create(sys.argv[1], {})
writer.append({"row": 0, "optimizer": "optimizer"})
print("recording", flush=True)
sys.stdin.read()
"""


def test_a_live_writer_of_another_process_is_not_disturbed_and_a_dead_ones_place_is_taken(tmp_path: Path) -> None:
    run = tmp_path / "run"
    other = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(run)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "recording\n"
    with pytest.raises(StoreError, match="being recorded by another process"):
        RunWriter.create(run, {}, resume=True)
    assert read_run(run).table.num_rows == 1
    other.kill()
    other.communicate()
    writer = RunWriter.create(run, {}, resume=True)
    assert writer.next_row == 1
    writer.close()


def test_a_second_writer_in_one_process_is_refused_until_the_first_is_closed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = RunWriter.create(run, {})
    with pytest.raises(StoreError, match="by this process already"):
        RunWriter.create(run, {}, resume=True)
    first.append(ROW)
    first.close()
    RunWriter.create(run, {}, resume=True).close()
    assert read_run(run).table.num_rows == 1


def test_a_refused_start_leaves_the_lock_free(tmp_path: Path) -> None:
    run = tmp_path / "run"
    writer = RunWriter.create(run, {})
    writer.append(ROW)
    writer.close()
    with pytest.raises(StoreError, match="resume=True"):
        RunWriter.create(run, {})
    RunWriter.create(run, {}, resume=True).close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_that_closes_leaves_its_parents_journal_alone(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run", {})
    writer.append(ROW)
    child = os.fork()
    if child == 0:
        writer.close()
        os._exit(0)
    os.waitpid(child, 0)
    writer.append({"row": 1, "optimizer": "optimizer"})
    assert read_run(tmp_path / "run").table["row"].to_pylist() == [0, 1]
    writer.close()


@pytest.mark.parametrize("path", ["", "x" * 300, "nul\0byte"])
def test_a_path_that_cannot_be_one_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=r"is no path|cannot be written"):
        RunWriter.create(path, {})
    assert list(tmp_path.iterdir()) == []
