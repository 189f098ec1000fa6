"""Runs in an object store or behind any URL: read as they are here, and refused in one line where they cannot be."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import fsspec
import pyarrow.fs
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from recorder.store import RunWriter
from spikeview.cli import main
from spikeview.importers import RunError, open_run
from spikeview.importers.elsewhere import copying, is_elsewhere, reading
from spikeview.importers.elsewhere.copying import SilentError, in_background
from tests.cli import stores

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_runs" / "fp16_overflow"

Captured = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with stores.s3_server() as place:
        stores.s3(place).create_dir(stores.BUCKET)
        yield place


@pytest.fixture(scope="module")
def gs() -> Iterator[str]:
    with stores.gs_server() as place:
        yield place


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: Patch) -> Iterator[Path]:
    """Where copies are made, and are gone again after each test; and credentials that any store here takes."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    yield place
    assert list(place.iterdir()) == []


def s3_url(place: str, path: str) -> str:
    return f"s3://{stores.BUCKET}/{path}?endpoint_override={place}&scheme=http"


def gs_url(place: str, path: str) -> str:
    return f"gs://{stores.BUCKET}/{path}?endpoint_override={place}&scheme=http&anonymous"


def recorded(path: Path, rows: int = 12, close: bool = True, rank: int = 0) -> Path:
    """A run of parts of three rows, its layers, an event, and, where it is not closed, a journal."""
    writer = RunWriter.create(path, {"model": "tiny"}, roll_rows=3, rank=rank)
    for number in range(rows):
        row = {"row": number, "step": number, "optimizer": "main", "loss": 1.0 + number, "executed": True}
        writer.append(row, user={"tokens": number})
        writer.append_layers([{"row": number, "optimizer": "main", "name": "w", "grad_norm": 1.0}])
    writer.event("note", text="hello")
    if close:
        writer.close()
        return path
    writer._background.shutdown(wait=True)  # every full part is sealed; the process then dies
    writer._lock.release()
    return path


def zipped(folder: Path, archive: Path) -> Path:
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                file.write(path, Path(folder.name) / path.relative_to(folder))
    return archive


def triaged(path: str, captured: Captured) -> tuple[int, dict[str, Any]]:
    status = main(["triage", "--json", path])
    told = json.loads(captured.readouterr().out)
    del told["run"]
    return status, told


def refusal(url: str, captured: Captured) -> str:
    assert main(["triage", url]) == 2
    out, told = captured.readouterr()
    assert out == ""
    assert told.count("\n") == 1
    assert "fault of its own" not in told
    return told


def kept(run: Any) -> dict[str, Any]:
    """Everything that a run holds, but where it lay."""
    told = {"notes": list(run.notes), "manifest": dict(run.manifest), "events": list(run.events), "rank": run.rank}
    return told | {"steps": run.table.to_pylist(), "layers": run.layers.to_pylist()}


def test_a_run_in_s3_is_triaged_as_it_is_here(s3: str, capsys: Captured, monkeypatch: Patch) -> None:
    stores.upload(SAMPLE, stores.s3(s3), f"{stores.BUCKET}/runs/fp16 overflow")
    here = triaged(str(SAMPLE), capsys)
    assert here[0] == 1
    url = s3_url(s3, "runs/fp16 overflow")
    assert triaged(url, capsys) == here
    assert triaged(url.replace("?", "/?"), capsys) == here
    main(["triage", "--json", url])
    assert json.loads(capsys.readouterr().out)["run"] == url
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{s3}")
    assert triaged("s3://bucket/runs/fp16 overflow", capsys) == here
    assert main(["triage", url]) == 1
    assert capsys.readouterr().out.startswith("fp16 overflow  12 rows")


def test_a_run_in_google_cloud_storage_is_triaged_as_it_is_here(gs: str, capsys: Captured) -> None:
    stores.upload(SAMPLE, stores.gs(gs), f"{stores.BUCKET}/runs/fp16")
    assert triaged(gs_url(gs, "runs/fp16"), capsys) == triaged(str(SAMPLE), capsys)


def test_a_run_behind_any_url_of_fsspec_is_triaged_as_it_is_here(capsys: Captured, tmp_path: Path) -> None:
    here = triaged(str(SAMPLE), capsys)
    archive = zipped(SAMPLE, tmp_path / "runs.zip")
    assert triaged(f"zip://{SAMPLE.name}::{archive}", capsys) == here
    assert triaged(f"simplecache::zip://{SAMPLE.name}::{archive}", capsys) == here
    memory = fsspec.filesystem("memory")
    memory.put(str(SAMPLE), "/runs/fp16", recursive=True)
    assert triaged("memory://runs/fp16", capsys) == here
    memory.rm("/runs", recursive=True)
    for cache in tempfile_caches():
        shutil.rmtree(cache)


def test_what_came_of_a_replay_comes_along_and_nothing_else_of_a_capture(tmp_path: Path, monkeypatch: Patch) -> None:
    sample = ROOT / "sample_runs" / "quadratic_divergence"
    copied: list[str] = []
    monkeypatch.setattr(reading, "copy_files", lambda *given: (copied.extend(given[1]), copying.copy_files(*given))[1])
    run = open_run(f"zip://{sample.name}::{zipped(sample, tmp_path / 'runs.zip')}")
    [capture] = run.captures
    assert capture.command is None  # it is no directory here that could be replayed
    assert capture.replay is not None
    assert capture.replay == open_run(sample).captures[0].replay
    assert [name for name in copied if "captures" in name] == [f"{sample.name}/captures/row-000101/replay.json"]


def test_a_run_on_a_web_server_is_triaged_as_it_is_here(capsys: Captured, tmp_path: Path) -> None:
    here = triaged(str(SAMPLE), capsys)
    pages = partial(Quiet, directory=str(SAMPLE.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), pages) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/{SAMPLE.name}"
        # in a process of its own, whose end closes what fsspec keeps open
        command = [sys.executable, "-m", "spikeview", "triage", "--json", url]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        server.shutdown()
    assert (done.returncode, done.stderr) == (here[0], "")
    told = json.loads(done.stdout)
    assert told.pop("run") == url
    assert told == here[1]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *given: Any) -> None:
        """Nobody reads it."""


def tempfile_caches() -> list[Path]:
    """What fsspec itself keeps, until the process ends, of what `simplecache` was asked for."""
    return [path for path in Path(tempfile.gettempdir()).iterdir() if not path.name.startswith("spikeview-")]


def test_a_file_url_is_a_path_of_this_machine(capsys: Captured, tmp_path: Path, temporary: Path) -> None:
    run = Path(shutil.copytree(SAMPLE, tmp_path / "a run"))
    temporary.chmod(0)  # nothing is copied
    assert triaged(run.as_uri(), capsys) == triaged(str(SAMPLE), capsys)
    temporary.chmod(0o755)
    assert "names another machine" in refusal("file://elsewhere/run", capsys)


def test_a_run_on_this_disk_costs_nothing_of_what_a_url_needs() -> None:
    code = "import sys; from spikeview.importers import open_run; open_run(sys.argv[1]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, SAMPLE], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"fsspec", "urllib.request", "asyncio"} & {*done.stdout.split()}


def test_a_drive_of_windows_and_a_directory_are_no_scheme(tmp_path: Path) -> None:
    for path in (r"C:\run", "C:/run", "c://run", "runs/s3://x", "./s3://x", "s3:", "run:2", tmp_path, "", "://x"):
        assert not is_elsewhere(path)
    for url in ("s3://b/r", "S3://b/r", "zip://r::file:///a.zip", "simplecache::s3://b/r", "abfs+x://r"):
        assert is_elsewhere(url)


def test_a_report_and_several_runs_are_made_of_urls_too(s3: str, capsys: Captured, tmp_path: Path) -> None:
    stores.upload(SAMPLE, stores.s3(s3), f"{stores.BUCKET}/reported")
    url = s3_url(s3, "reported")
    assert main(["report", url, "-o", str(tmp_path / "x.md")]) == 0
    assert (tmp_path / "x.md").read_text().startswith("# reported: ")
    assert main(["triage", "--json", url, str(SAMPLE)]) == 1
    out = capsys.readouterr().out
    assert [run["rows"] for run in json.loads(out[out.index("{") :])["runs"]] == [12, 12]


def test_a_log_of_another_kind_in_a_store_is_read_too(s3: str, capsys: Captured, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("step,loss,grad_norm\n" + "".join(f"{step},{2 - step / 1000},1.0\n" for step in range(200)))
    stores.upload(log, stores.s3(s3), f"{stores.BUCKET}/logs/log.csv")
    assert triaged(s3_url(s3, "logs/log.csv"), capsys) == triaged(str(log), capsys)


def test_what_is_read_stays_when_the_copy_is_gone(s3: str, tmp_path: Path) -> None:
    path = recorded(tmp_path / "run", rows=11, close=False)
    stores.upload(path, stores.s3(s3), f"{stores.BUCKET}/stays")
    run = open_run(s3_url(s3, "stays"))
    assert kept(run) == kept(open_run(path))
    assert run.refresh() is run
    assert run.values("user_tokens").tolist() == list(range(11))


def test_only_what_is_read_is_copied(s3: str, tmp_path: Path, monkeypatch: Patch) -> None:
    path = recorded(tmp_path / "run")
    recorded(path, rows=3, rank=2)
    (path / "captures").mkdir()
    (path / "captures/big.safetensors").write_bytes(bytes(100))
    (path / "steps/rank=0/_lock").write_text("")
    stores.upload(path, stores.s3(s3), f"{stores.BUCKET}/parts")
    copied: list[str] = []
    monkeypatch.setattr(reading, "copy_files", lambda *given: (copied.extend(given[1]), copying.copy_files(*given))[1])
    run = open_run(s3_url(s3, "parts"))
    assert run.notes == ("rank 2 is not shown: only rank 0 is read",)
    names = ["events.jsonl", "run.json"]
    names += [f"{table}/rank=0/part-{number:06d}.parquet" for table in ("layers", "steps") for number in range(4)]
    assert sorted(copied) == sorted(f"{stores.BUCKET}/parts/{name}" for name in names)
    assert open_run(s3_url(s3, "parts"), rank=2).rank == 2
    with pytest.raises(RunError, match=r"holds no rank 1, but ranks 0, 2; choose"):
        open_run(s3_url(s3, "parts"), rank=1)


def test_a_live_run_that_is_half_uploaded_is_read_as_far_as_it_goes(s3: str, tmp_path: Path) -> None:
    path = recorded(tmp_path / "run", rows=11, close=False)
    journal = path / "steps/rank=0/_journal-000003"
    journal.write_bytes(journal.read_bytes()[:-9])
    (path / "steps/rank=0/part-000001.parquet").unlink()
    shutil.rmtree(path / "layers")
    (path / "events.jsonl").unlink()
    stores.upload(path, stores.s3(s3), f"{stores.BUCKET}/half")
    run = open_run(s3_url(s3, "half"))
    assert run.values("row").tolist() == [0, 1, 2, 6, 7, 8, 9]
    assert kept(run) == kept(open_run(path))
    assert len(run.notes) == 2
    (path / "run.json").unlink()
    stores.upload(path, stores.s3(s3), f"{stores.BUCKET}/without")
    with pytest.raises(RunError, match=r"^s3://bucket/without\S+: holds no run.json, so it is not a run"):
        open_run(s3_url(s3, "without"))


def test_a_journal_that_is_sealed_between_listing_and_copying_is_looked_for_anew(
    s3: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    path = recorded(tmp_path / "run", rows=11, close=False)
    system, base = stores.s3(s3), f"{stores.BUCKET}/sealed"
    stores.upload(path, system, base)
    copies: list[int] = []

    def copy_files(*given: Any) -> None:
        if not copies:
            RunWriter.create(path, {}, resume=True).close()
            stores.upload(path, system, base)
            system.delete_file(f"{base}/steps/rank=0/_journal-000003")
        copies.append(1)
        copying.copy_files(*given)

    monkeypatch.setattr(reading, "copy_files", copy_files)
    run = open_run(s3_url(s3, "sealed"))
    assert len(copies) == 2
    assert kept(run) == kept(open_run(path))
    assert run.values("row").tolist() == list(range(11))


HOSTILE = [
    "../evil",
    "../../evil",
    "steps/rank=0/../../../evil",
    "steps/rank=0/part-000000.parquet/evil",
    "steps/rank=0/_lock",
    "steps/rank=../part-000000.parquet",
    "steps/rank=0/part-\u0660\u0660\u0660\u0660\u0660\u0660.parquet",
    "steps/rank=0/part-0000000.parquet",
    "steps/rank=0/part-000000.parquet ",
    "steps/rank=\u0660/part-000000.parquet",
    "steps//rank=0/part-000000.parquet",
    "captures/weights.safetensors",
    "events-rank=../../evil.jsonl",
    "steps/rank=0/" + "x" * 200,
]


def test_no_name_in_a_store_leads_out_of_the_copy(s3: str, tmp_path: Path, monkeypatch: Patch) -> None:
    path = recorded(tmp_path / "run")
    stores.upload(path, stores.s3(s3), f"{stores.BUCKET}/hostile")
    archive = zipped(path, tmp_path / "hostile.zip")
    with zipfile.ZipFile(archive, "a") as file:
        for name in HOSTILE:
            file.writestr(f"run/{name}", b"evil")
        file.writestr("/etc/evil", b"evil")
    for name in HOSTILE:
        key = urllib.request.quote(f"hostile/{name}", safe="=")
        request = urllib.request.Request(f"http://{s3}/{stores.BUCKET}/{key}", data=b"evil", method="PUT")
        urllib.request.urlopen(request).close()
    before = {found for found in tmp_path.rglob("*") if found.parent != path}
    landed: list[Path] = []
    real = reading.copy_files

    def copy_files(system: Any, sizes: Any, targets: dict[str, Path], sent: Any) -> None:
        real(system, sizes, targets, sent)
        landed.extend(found for found in tmp_path.rglob("*") if found.is_file() and found not in before)
        assert not any(b"evil" in target.read_bytes() for target in targets.values())

    monkeypatch.setattr(reading, "copy_files", copy_files)
    expected = kept(open_run(path))
    for url in (s3_url(s3, "hostile"), f"zip://run::{archive}"):
        landed.clear()
        assert kept(open_run(url)) == expected
        assert {found.name for found in landed} == {
            "run.json",
            "events.jsonl",
            *(f"part-00000{number}.parquet" for number in range(4)),
        }


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("s3://", "s3://: names no bucket; give it as scheme://BUCKET/RUN"),
        ("s3:///run", "names no bucket"),
        ("s3://b/r?region=eu&depth=1", "has no option depth; those it has are endpoint_override, scheme, region"),
        ("s3://b/r?scheme=ftp", "cannot be read (Invalid S3 connection scheme 'ftp'); check the URL"),
        ("s3://key:secret@b/r", "s3://key:***@b/r: holds a user or a key, which does not belong in a URL"),
        ("sftp://me:secret@host/r", 'sftp://me:***@host/r: SFTPFileSystem requires "paramiko" to be installed'),
        ("nosuch://b/r", "nosuch: is a scheme that nothing here serves; give a path, s3://, gs://, or what fsspec"),
        ("zip://r::/nowhere.zip", "is not there ([Errno 2] No such file or directory: '/nowhere.zip')"),
        ("memory://nowhere", "memory://nowhere: is not there; check every name in the URL"),
        ("memory://a\x1b[31m\nb", "memory://a\\x1b[31m\\x0ab: is not there"),
        ("ftp://127.0.0.1:1/r", "ftp://127.0.0.1:1/r: cannot be reached ("),
    ],
)
def test_what_cannot_be_served_is_refused_with_the_reason(url: str, says: str, capsys: Captured) -> None:
    told = refusal(url, capsys)
    assert says in told
    assert "secret" not in told


def test_what_is_not_in_a_store_is_told(s3: str, gs: str, capsys: Captured) -> None:
    for url in (s3_url(s3, "nowhere"), s3_url(s3, "x" * 900), gs_url(gs, "nowhere")):
        assert "is not there; check every name in the URL" in refusal(url, capsys)
        assert "is not there" in refusal(url.replace("bucket", "no-bucket"), capsys)
    system = stores.s3(s3)
    stores.upload(SAMPLE / "record.py", system, f"{stores.BUCKET}/record.py")
    stores.upload(SAMPLE / "record.py", system, f"{stores.BUCKET}/folder/record.py")
    assert "record.py?" in (told := refusal(s3_url(s3, "record.py"), capsys))
    assert "spikeview-" not in told
    assert "holds no run.json, so it is not a run" in refusal(s3_url(s3, "folder"), capsys)


def test_a_damaged_part_is_told_of_by_its_place_in_the_store(s3: str, tmp_path: Path, capsys: Captured) -> None:
    path = recorded(tmp_path / "run")
    (path / "run.json").write_text("{")
    stores.upload(path, stores.s3(s3), f"{stores.BUCKET}/damaged")
    told = refusal(s3_url(s3, "damaged"), capsys)
    assert told.startswith(f"spikeview: {s3_url(s3, 'damaged')}/run.json: is not JSON")


def test_credentials_that_a_store_does_not_know_are_told(capsys: Captured) -> None:
    with stores.s3_server() as place:
        stores.s3(place).create_dir(stores.BUCKET)
        headers = {"Content-Type": "text/plain"}
        address = f"http://{place}/moto-api/reset-auth"  # from now on the server asks who is there
        urllib.request.urlopen(urllib.request.Request(address, data=b"0", headers=headers, method="POST")).close()
        told = refusal(s3_url(place, "run"), capsys)
    assert "may not be read with the credentials found here (INVALID_ACCESS_KEY_ID" in told
    assert "set them in the environment" in told


def test_a_place_where_nobody_listens_is_told(capsys: Captured) -> None:
    told = refusal(s3_url(f"127.0.0.1:{stores.free_port()}", "run"), capsys)
    assert "cannot be reached (Failed to connect to 127.0.0.1" in told
    assert "check the network, and the endpoint if you set one" in told


def test_a_place_that_never_answers_is_given_up(capsys: Captured, monkeypatch: Patch) -> None:
    monkeypatch.setattr(copying, "PATIENCE_S", 0.2)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        assert "did not answer for 0.2 s" in refusal(gs_url(f"127.0.0.1:{server.getsockname()[1]}", "run"), capsys)


def test_one_job_that_fails_ends_the_wait_for_all(monkeypatch: Patch) -> None:
    never = Event()

    def fails(went_on: Callable[[int], None]) -> None:
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        in_background([lambda went_on: bool(never.wait()) and None, fails], lambda size: None)
    monkeypatch.setattr(copying, "PATIENCE_S", 0.01)
    with pytest.raises(SilentError):
        in_background([lambda went_on: bool(never.wait()) and None], lambda size: None)
    never.set()


class Lying(MemoryFileSystem):
    """A store that sends without end what it lists as small."""

    protocol = "lying"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace("lying://", "memory://")))

    def _open(self, path: str, mode: str = "rb", **choices: Any) -> Any:
        endless = "part-000000" in path and mode == "rb"
        return io.BufferedReader(Endless()) if endless else super()._open(path, mode, **choices)


class Endless(io.RawIOBase):
    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return len(buffer)


def test_a_file_that_never_ends_is_given_up(capsys: Captured, tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(copying, "GROWTH", 2**20)
    fsspec.register_implementation("lying", Lying, clobber=True)
    system = fsspec.filesystem("lying")
    system.put(str(recorded(tmp_path / "run")), "/lying", recursive=True)
    assert "part-000000.parquet sends far more than it is said to hold" in refusal("lying://lying", capsys)
    system.rm("/lying", recursive=True)


def test_a_run_that_this_machine_has_no_room_for_is_refused(
    s3: str, capsys: Captured, monkeypatch: Patch, temporary: Path
) -> None:
    stores.upload(SAMPLE, stores.s3(s3), f"{stores.BUCKET}/large")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9, 1000))
    told = refusal(s3_url(s3, "large"), capsys)
    assert f"MB, and {temporary} has room for 0.0 MB; set TMPDIR to a larger disk" in told
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "none"))
    assert "there is no place for temporary files" in refusal(s3_url(s3, "large"), capsys)


def test_what_is_not_installed_is_named(capsys: Captured, monkeypatch: Patch) -> None:
    monkeypatch.delattr(pyarrow.fs, "S3FileSystem")
    monkeypatch.setattr(pyarrow.fs, "_not_imported", ["S3FileSystem"])
    assert "is not built with support for 'S3FileSystem'; install one that was" in refusal("s3://b/r", capsys)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    told = refusal("memory://run", capsys)
    assert "memory: is served through fsspec, which is not installed; run: pip install fsspec" in told


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_ctrl_c_while_a_run_is_fetched_leaves_nothing_behind(temporary: Path) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        url = s3_url(f"127.0.0.1:{server.getsockname()[1]}", "run")
        process = subprocess.Popen(
            [sys.executable, "-m", "spikeview", "triage", url],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        server.accept()[0].close()  # it is being asked
        assert len(list(temporary.iterdir())) == 1
        process.send_signal(signal.SIGINT)
        out, told = process.communicate()
    assert (process.returncode, out, told) == (130, "", "")
