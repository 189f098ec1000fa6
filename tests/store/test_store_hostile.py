"""What lies in a run directory may be anything: it is read or refused in one line, and never waited for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recorder.schema import SCHEMA_VERSION, STEPS
from recorder.store import RunWriter, StoreError, is_run, read_run
from recorder.store.documents import LARGEST_MANIFEST, LEVELS
from recorder.store.journal import MAGIC, create_journal, frame
from recorder.store.journal_reader import TORN
from recorder.store.layout import Layout

MakeRow = Callable[..., dict[str, Any]]

posix = pytest.mark.skipif(sys.platform == "win32", reason="has neither pipes nor devices among its files")
PART, JOURNAL = "steps/rank=0/part-000001.parquet", "steps/rank=0/_journal-000002"
FILES = ["run.json", "events.jsonl", PART, JOURNAL]


@pytest.fixture
def run(tmp_path: Path, make_row: MakeRow) -> Path:
    """A run of two parts with one event."""
    written(tmp_path / "run", make_row)
    return tmp_path / "run"


def written(path: Path, make_row: MakeRow, rows: int = 6, **choices: Any) -> None:
    writer = RunWriter.create(path, {}, roll_rows=3, **choices)
    for number in range(rows):
        writer.append(make_row(number))
    writer.event("note", text="hello")
    writer.close()


def refusal(path: Path, **choices: Any) -> str:
    with pytest.raises(StoreError) as caught:
        read_run(path, **choices)
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    return text


@posix
@pytest.mark.parametrize("name", FILES)
def test_a_named_pipe_is_refused_and_not_waited_for(run: Path, name: str) -> None:
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    # in a process of its own: to wait for a pipe cannot be interrupted from within
    code = "import sys; from recorder.store import read_run; read_run(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(run)], capture_output=True, text=True, timeout=60, check=False
    )
    assert f"{name}: is a named pipe, and must be a file; restore" in done.stderr


@posix
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("target", ["/dev/zero", "outside"])
def test_a_link_out_of_the_run_is_refused(run: Path, name: str, target: str, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("{}")
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(tmp_path / target)
    says = "is a device" if target == "/dev/zero" else "is a link that leads out of the run"
    assert f"{name}: {says}" in refusal(run)


@posix
@pytest.mark.parametrize("name", [*FILES[:3], "steps"])
def test_a_link_within_the_run_is_followed(run: Path, name: str) -> None:
    expected = read_run(run)
    (run / name).rename(run / "elsewhere")
    (run / name).symlink_to(run / "elsewhere")
    (run.parent / "latest").symlink_to(run)
    found = read_run(run.parent / "latest")
    assert found.table.equals(expected.table)
    assert found.events == expected.events


@posix
@pytest.mark.parametrize("name", FILES)
def test_a_link_to_nothing_and_a_loop_of_links_are_called_so(run: Path, name: str) -> None:
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to("gone")
    assert f"{name}: is a link to a file that is not there; restore" in refusal(run)
    (run / name).unlink()
    (run / name).symlink_to(Path(name).name)
    assert f"{name}: is a link that leads back to itself; restore" in refusal(run)


@pytest.mark.parametrize("name", FILES)
def test_a_directory_in_the_place_of_a_file(run: Path, name: str) -> None:
    (run / name).unlink(missing_ok=True)
    (run / name).mkdir()
    assert f"{name}: is a directory, and must be a file; restore" in refusal(run)


def test_a_file_in_the_place_of_a_directory(run: Path) -> None:
    shutil.rmtree(run / "steps")
    (run / "steps").write_text("")
    text = refusal(run)
    assert text.endswith("check the path")
    assert "permissions" not in text


def test_a_manifest_too_large_to_be_one_is_not_read(run: Path) -> None:
    with (run / "run.json").open("r+b") as file:
        file.truncate(LARGEST_MANIFEST + 1)
    assert "run.json: holds 67,108,865 bytes, more than any manifest" in refusal(run)


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "/".join(["x" * 200] * 30), "\ud800"])
def test_what_is_no_path_at_all(tmp_path: Path, name: str) -> None:
    assert not is_run(tmp_path / name)
    refusal(tmp_path / name)


@pytest.fixture
def as_nobody(make_row: MakeRow) -> Iterator[Path]:
    """A run where permissions count: root, whom they do not stop, becomes nobody while the test lasts."""
    place = Path(tempfile.mkdtemp())
    written(place / "run", make_row)
    place.chmod(0o755)
    root = sys.platform != "win32" and os.geteuid() == 0
    if root:
        os.seteuid(65534)
    yield place / "run"
    if root:
        os.seteuid(0)
    shutil.rmtree(place)


@posix
@pytest.mark.parametrize("name", [".", "steps", "steps/rank=0", "run.json", PART])
def test_what_may_not_be_read_is_a_matter_of_permissions(as_nobody: Path, name: str) -> None:
    path = as_nobody / name
    mode, user = path.stat().st_mode, os.geteuid()
    os.seteuid(os.getuid())
    path.chmod(0)
    os.seteuid(user)
    try:
        text = refusal(as_nobody)
        assert "cannot be read (Permission denied)" in text
        assert text.endswith("check its permissions")
        assert name == "." or is_run(as_nobody) or name == "run.json"
    finally:
        os.seteuid(os.getuid())
        path.chmod(mode)


@posix
def test_a_path_that_is_no_utf_8_is_written_and_read(tmp_path: Path, make_row: MakeRow) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9")
    written(path, make_row)
    assert read_run(path).table.num_rows == 6


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ('{"schema_version": 1}'.encode("utf-16"), "run.json: is not JSON in UTF-8"),
        ('{"schema_version": 1}'.encode("utf-16-le"), "run.json: is not JSON in UTF-8"),
        (b'{"schema_version": 0}', "run.json: has schema version 0, which no recorder ever wrote"),
        (b'{"schema_version": -1}', "run.json: has schema version -1, which no recorder ever wrote"),
        (b'{"schema": "spikeview.report", "schema_version": 1}', "run.json: is a document of another kind"),
    ],
)
def test_manifests_of_no_recorder(run: Path, data: bytes, says: str) -> None:
    (run / "run.json").write_bytes(data)
    assert says in refusal(run)


def test_a_manifest_may_begin_with_a_byte_order_mark(run: Path) -> None:
    data = (run / "run.json").read_bytes()
    (run / "run.json").write_bytes(b"\xef\xbb\xbf" + data)
    assert read_run(run).manifest["schema_version"] == SCHEMA_VERSION


def nested(levels: int) -> Any:
    value: Any = "the end"
    for _ in range(levels):
        value = [value]
    return value


def test_what_is_said_of_a_run_is_text_of_a_sensible_depth(run: Path) -> None:
    manifest = {"schema_version": 1, "\ud800": "\ud800", "deep": nested(600), "fine": nested(LEVELS - 1)}
    (run / "run.json").write_text(json.dumps(manifest))
    event = {"kind": "note", "\ud800": "\ud800", "deep": nested(600)}
    (run / "events.jsonl").write_text(json.dumps(event) + "\n")
    found = read_run(run)
    for told in (found.manifest, found.events[0]):
        assert json.dumps(told, ensure_ascii=False).encode()
        assert told["\\ud800"] == "\\ud800"
        assert told["deep"] == json.loads("[" * (LEVELS - 1) + '"…"' + "]" * (LEVELS - 1))
    assert found.manifest["fine"] == nested(LEVELS - 1)


def test_what_is_written_can_be_read_however_deep_it_is(tmp_path: Path, make_row: MakeRow) -> None:
    written(tmp_path / "run", make_row)
    writer = RunWriter.create(tmp_path / "run", {"config": nested(300)}, resume=True)
    writer.close()
    assert read_run(tmp_path / "run").manifest["config"]


@pytest.mark.parametrize(
    "columns",
    [
        [["", "double"]],
        [["\ud800", "double"]],
        [["#flags", "double"]],
        [["x", "double"]],
        [["row", "int64"], ["row", "int64"]],
        [["row"]],
        [[1, "double"]],
        [[None, "double"]],
        {"row": "int64"},
        7,
    ],
)
def test_a_journal_with_columns_of_no_recorder(run: Path, columns: Any) -> None:
    (run / JOURNAL).write_bytes(MAGIC + frame(json.dumps({"columns": columns}).encode()))
    assert "_journal-000002: " in refusal(run)


def test_a_whole_last_row_that_cannot_be_understood_is_damage(run: Path) -> None:
    create_journal(run / JOURNAL, Layout.of(STEPS)).close()
    with (run / JOURNAL).open("ab") as file:
        file.write(frame(b"no row of ours"))
    [note] = read_run(run).notes
    assert note != TORN
    assert "is damaged at byte" in note


def test_a_user_field_has_a_name_that_is_text(run: Path, make_row: MakeRow) -> None:
    from recorder.store.journal import encode
    from recorder.store.packing import Packer
    from recorder.store.shapes import Shapes

    packer = Packer(Shapes(Layout.of(STEPS)))
    block, defines, _ = packer.record(0, make_row(6), None, pending=False)
    file = create_journal(run / JOURNAL, packer.layout)
    file.append(encode((block, defines, {"\ud800": 2.0})))
    file.close()
    assert read_run(run).table["user_\\ud800"].to_pylist()[-1] == 2.0


def test_the_other_ranks_are_told_of(tmp_path: Path, make_row: MakeRow) -> None:
    for rank in (0, 1, 2, 11):
        written(tmp_path / "run", make_row, rows=rank + 1, rank=rank)
    found = read_run(tmp_path / "run")
    assert (found.rank, found.table.num_rows) == (0, 1)
    assert found.notes == ("ranks 1, 2, 11 are not shown: only rank 0 is read",)
    found = read_run(tmp_path / "run", rank=2)
    assert (found.rank, found.table.num_rows) == (2, 3)
    assert found.notes == ("ranks 0, 1, 11 are not shown: only rank 2 is read",)
    assert "holds no rank 5, but ranks 0, 1, 2, 11; choose one" in refusal(tmp_path / "run", rank=5)


def test_many_ranks_are_told_of_in_few_words(run: Path) -> None:
    for rank in range(1, 64):
        (run / f"steps/rank={rank}").mkdir()
    assert read_run(run).notes == ("ranks 1 to 63 are not shown: only rank 0 is read",)
    for rank in range(1, 64, 2):
        (run / f"steps/rank={rank}").rmdir()
    assert read_run(run).notes == ("ranks 2, 4, 6, 8, 10, 12 and 25 more are not shown: only rank 0 is read",)


def test_the_first_rank_with_rows_is_read(run: Path) -> None:
    (run / "steps/rank=0").rename(run / "steps/rank=3")
    (run / "steps/rank=0").mkdir()
    found = read_run(run)
    assert (found.rank, found.table.num_rows) == (3, 6)
