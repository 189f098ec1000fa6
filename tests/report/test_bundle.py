"""A bundle: an incident that somebody else opens and finds what was found here."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recorder.schema import SCHEMA_VERSION
from recorder.store import read_run
from recorder.store.whole import write_run
from spikeview.cli import main
from spikeview.commands.diagnosing import diagnosis_of
from spikeview.importers import Asked, open_run
from spikeview.report.bundle import write_bundle
from spikeview.report.content import content
from spikeview.report.errors import ReportError
from spikeview.rules.diagnosis import Diagnosis, diagnose
from spikeview.rules.triage import triage
from tests.report.conftest import make_run, sketched

SAMPLES = Path(__file__).parents[2] / "sample_runs"
BAD = (3_000, 9_000)


@cache
def long_run() -> Diagnosis:
    """12,000 rows of two optimizers with two incidents, and batches, events and a manifest that tell who and where."""
    rows, random = 12_000, np.random.default_rng(1)
    loss = 2 * np.exp(-np.arange(rows) / rows) * np.exp(0.03 * random.standard_normal(rows))
    norm = np.exp(0.1 * random.standard_normal(rows))
    for bad in BAD:
        loss[bad : bad + 3] *= 20
        norm[bad : bad + 3] *= 30
    columns = {
        "loss": loss,
        "grad_norm": norm,
        "lr": [1e-3] * rows,
        "batch_id": [f"/data/ada/shard-{at % 997}.tar" for at in range(rows)],
        "user_domain": ["secret-corpus"] * rows,
        "user_tokens": range(rows),
        "attempted": [True] * rows,
        "executed": [True] * rows,
    }
    both = {name: np.repeat(np.array(values), 2).tolist() for name, values in columns.items()}
    identity = {name: np.repeat(np.arange(rows), 2).tolist() for name in ("row", "step")}
    events = [
        *({"kind": "checkpoint", "row": at, "name": f"/ckpt/ada/{at}", "time_ns": 0} for at in (2_499, 8_499)),
        {"kind": "note", "row": 8_999, "text": "ada says: look at gpu-node-7", "time_ns": 0},
        {"kind": "validation", "row": 100, "loss": 1.5, "time_ns": 0},
    ]
    manifest = {
        "host": "gpu-node-7",
        "user": "ada",
        "config": {"data": "/data/ada", "lr": 0.001, "/data/ada": 1.0, "nested": {"owner": "ada"}},
        "optimizers": {"g": {"class": "Adam", "checkpoint": "/ckpt/ada/best.pt"}},
        "recorder": {"version": "0.1.0", "torch": "2.13.0"},
    }
    names = ["g", "d"] * rows
    run = make_run({**both, **identity, "optimizer": names}, "ada-run-3", manifest, events=events)
    return diagnose(run)


def first_bad(diagnosis: Diagnosis) -> list[tuple[Any, ...]]:
    keys = ("row", "step", "optimizer", "signal", "value", "reason")
    return [tuple(one["first_bad"][key] for key in keys) for one in triage(diagnosis)["incidents"]]


@pytest.fixture(autouse=True, scope="module")
def quick_figures() -> Iterator[None]:
    with sketched():
        yield


@pytest.fixture(scope="module")
def redacted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of the later incident, with nothing of who and where."""
    return write_bundle(long_run(), 3, tmp_path_factory.mktemp("bundle") / "x.zip", redact=True, note="for you")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of the first incident as it is."""
    return write_bundle(long_run(), 1, tmp_path_factory.mktemp("bundle") / "x.zip", note="seen at night")


def bundled(tmp_path: Path, diagnosis: Diagnosis, incident: int, **options: Any) -> Path:
    return write_bundle(diagnosis, incident, tmp_path / "incident.spikeview.zip", **options)


def test_a_bundle_opens_as_a_run_with_the_same_first_bad_row(first: Path) -> None:
    run = open_run(first)
    assert set(run.optimizers) == {"g", "d"}
    assert first_bad(diagnose(run)) == [each for each in first_bad(long_run()) if each[0] == BAD[0]]
    assert run.values("row").min() == BAD[0] - 2_000
    assert run.notes[0].startswith("a bundle: rows 1000 to 34")
    assert run.refresh() is run


def test_a_bundle_takes_more_rows_where_fewer_would_say_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rows before an incident are no baseline."""
    monkeypatch.setattr("spikeview.report.excerpt.BEFORE", 2)
    run = open_run(bundled(tmp_path, long_run(), 1))
    assert run.values("row").min() == BAD[0] - 20
    assert first_bad(diagnose(run))[0] == first_bad(long_run())[0]


@pytest.mark.parametrize("name", ["amp_clock_drift", "bf16_explosion", "fp16_overflow", "update_against_gradient"])
def test_a_bundle_of_a_sample_run_is_diagnosed_like_the_run(tmp_path: Path, name: str) -> None:
    whole = diagnose(open_run(SAMPLES / name))
    again = diagnose(open_run(bundled(tmp_path, whole, 1)))
    keys = ("first_bad", "transition", "last_healthy_row", "last_row", "severity", "persistence", "findings", "lead")
    [one], [other] = triage(whole)["incidents"], triage(again)["incidents"]
    assert [other[key] for key in keys] == [one[key] for key in keys]
    layers = [content(each)["incidents"][0]["layers"] for each in (whole, again)]
    assert layers[0] == layers[1]


def test_a_bundle_holds_the_report_and_a_run_directory(first: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(first) as archive:
        names = archive.namelist()
        report = json.loads(archive.read("report.json"))
        assert "seen at night" in archive.read("report.html").decode()
        archive.extractall(tmp_path / "out")
    assert {"bundle.json", "report.html", "report.md", "report.json", "run/run.json", "run/events.jsonl"} <= set(names)
    assert report == content(long_run(), 1, note="seen at night")
    stored = read_run(tmp_path / "out" / "run")
    assert stored.manifest["host"] == "gpu-node-7"
    assert [event["kind"] for event in stored.events] == ["checkpoint"]


def test_the_same_incident_gives_the_same_bytes(first: Path, tmp_path: Path) -> None:
    again = bundled(tmp_path, long_run(), 1, note="seen at night")
    assert again.read_bytes() == first.read_bytes()


def test_a_redacted_bundle_tells_nothing_of_who_and_where(redacted: Path) -> None:
    path = redacted
    words = ("ada", "gpu-node-7", "/data", "/ckpt", "secret-corpus", "shard-", "/somewhere", "private")
    with zipfile.ZipFile(path) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist() if not name.endswith(".parquet")}
    run = open_run(path)
    texts["rows"] = json.dumps(run.table.to_pydict())
    for name, text in texts.items():
        assert [word for word in words if word in text.replace("spikeview.report", "")] == [], name
    assert "user_domain" not in run
    assert "user_tokens" in run
    assert run.manifest["config"]["lr"] == 0.001
    assert run.manifest["recorder"]["torch"] == "2.13.0"
    assert "for you" in texts["report.md"]


def test_a_redacted_batch_and_checkpoint_keep_one_name(redacted: Path, tmp_path: Path) -> None:
    whole = long_run()
    runs = [open_run(bundled(tmp_path, whole, 1, redact=True)), open_run(redacted)]
    original = whole.run.table["batch_id"].to_pylist()
    name_of: dict[str, set[str]] = {}
    for run in runs:
        for row, name in zip(run.values("row").tolist(), run.table["batch_id"].to_pylist(), strict=True):
            name_of.setdefault(original[2 * row], set()).add(name)
    assert all(len(names) == 1 for names in name_of.values())
    assert len(set.union(*name_of.values())) == len(name_of) == 997
    assert [event["name"] for event in runs[1].events if event["kind"] == "checkpoint"] == [
        "checkpoint-0",
        "checkpoint-1",
    ]
    assert first_bad(diagnose(runs[1])) == [each for each in first_bad(whole) if each[0] == 9_000]


@pytest.mark.parametrize("redact", [False, True])
def test_what_came_of_a_replay_goes_along_unless_redacted(redact: bool, tmp_path: Path) -> None:
    whole = diagnose(open_run(SAMPLES / "quadratic_divergence"))
    path = bundled(tmp_path, whole, 1, redact=redact)
    with zipfile.ZipFile(path) as archive:
        captured = [name for name in archive.namelist() if "captures" in name]
    assert captured == ([] if redact else ["run/captures/row-000101/replay.json"])
    again = diagnose(open_run(path))
    [first], [before] = again.incidents, whole.incidents
    said = [(each.id, each.verdict) for each in first.findings]
    assert (said == [(each.id, each.verdict) for each in before.findings]) is not redact
    assert [each.command for each in again.run.captures] == ([] if redact else [None])


def test_captures_go_along_where_they_are_asked_for(tmp_path: Path) -> None:
    whole = diagnose(open_run(SAMPLES / "bf16_explosion"))
    home = tmp_path / "run"
    for row, name in ((6, "batch.safetensors"), (6, "replay.json"), (6, "state.pkl"), (5_000, "batch.safetensors")):
        place = home / "captures" / f"row-{row:06d}"
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_text('{"comparisons": [{"hypothesis": "range", "outcome": "o", "verdict": "v"}]}')
    at_home = replace(whole, run=replace(whole.run, path=str(home), _cache={}))
    path = bundled(tmp_path, at_home, 1, captures=True)
    with zipfile.ZipFile(path) as archive:
        captured = [name for name in archive.namelist() if "captures" in name]
    assert captured == ["run/captures/row-000006/batch.safetensors", "run/captures/row-000006/replay.json"]
    [replay] = content(diagnose(open_run(path)))["incidents"][0]["replays"]
    assert replay["comparisons"][0]["hypothesis"] == "range"


@pytest.mark.parametrize(
    ("incident", "options", "says"),
    [
        (None, {}, "has 4 incidents: say which one with --incident N"),
        (5, {}, "There is no incident 5: ada-run-3 has 4"),
        (1, {"captures": True}, "holds no capture of rows 2969 to 3"),
        (1, {"captures": True, "redact": True}, "Leave one of the two out"),
    ],
)
def test_what_cannot_be_bundled_gets_one_line(
    tmp_path: Path, incident: int | None, options: dict[str, bool], says: str
) -> None:
    with pytest.raises(ReportError) as caught:
        write_bundle(long_run(), incident, tmp_path / "x.zip", **options)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_is_named_like_a_zip_file(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"call x\.bundle something like incident\.spikeview\.zip"):
        write_bundle(long_run(), 1, tmp_path / "x.bundle")


def test_a_healthy_run_has_nothing_to_bundle(healthy: Diagnosis, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="healthy has no incident"):
        write_bundle(healthy, None, tmp_path / "x.zip")


def test_who_ends_a_bundle_leaves_nothing(tmp_path: Path) -> None:
    class EnoughError(Exception):
        pass

    def stop(text: str) -> None:
        if text == "packing":
            raise EnoughError

    with pytest.raises(EnoughError):
        write_bundle(long_run(), 1, tmp_path / "x.zip", told=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_log_without_row_numbers_keeps_its_rows(tmp_path: Path, explosion: Diagnosis) -> None:
    rows = 400
    loss = [2.0 + 0.01 * (at % 7) for at in range(rows)]
    loss[300] = 90.0
    run = make_run({"loss": loss})
    bare = replace(run, table=run.table.drop_columns(["row", "segment", "micro_step", "optimizer"]), _cache={})
    whole = diagnose(bare)
    path = bundled(tmp_path, whole, 1)
    assert first_bad(diagnose(open_run(path)))[0][0] == first_bad(whole)[0][0] == 300


def test_the_command_writes_a_bundle_that_triage_opens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "incident.spikeview.zip")
    command = ["bundle", str(SAMPLES / "bf16_explosion"), "-o", path]
    assert main(command) == 0
    assert main(["triage", path, "--json"]) == 1
    out = capsys.readouterr().out
    assert '"row": 6' in out
    assert main(command) == 2
    assert capsys.readouterr().err.endswith(
        "incident.spikeview.zip exists. Choose another name, or replace it with --force.\n"
    )
    assert main([*command, "--force", "--redact"]) == 0
    assert main(["bundle", str(SAMPLES / "healthy"), "-o", str(tmp_path / "y.zip")]) == 2
    assert "healthy has no incident" in capsys.readouterr().err


@pytest.fixture
def two_ranks(tmp_path: Path) -> Path:
    """A run of two ranks; the second alone has an incident."""
    rows, home = 300, tmp_path / "two"
    for rank in range(2):
        loss = [2.0 + 0.01 * (at % 7) for at in range(rows)]
        loss[200] = 90.0 if rank else loss[200]
        columns = {"loss": loss, "attempted": [True] * rows, "executed": [True] * rows}
        table = make_run({**columns, "time_ns": range(rows)}).table
        place = home if rank == 0 else tmp_path / "other"
        write_run(place, table, {"schema_version": SCHEMA_VERSION}, [], rank=rank)
    (tmp_path / "other" / "steps" / "rank=1").rename(home / "steps" / "rank=1")
    return home


def test_an_incident_of_another_rank_is_reported_and_bundled_from_there(
    two_ranks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, path = tmp_path / "all.html", str(tmp_path / "x.zip")
    assert main(["report", str(two_ranks), "--rank", "all", "-o", str(page)]) == 0
    assert "Loss left its baseline at step 200" in page.read_text("utf-8")
    everything = diagnosis_of(str(two_ranks), "all", Asked())
    with pytest.raises(ReportError, match="was seen on rank 1: bundle that one with --rank 1"):
        write_bundle(everything, None, Path(path))
    assert main(["bundle", str(two_ranks), "--rank", "1", "-o", path]) == 0
    run = open_run(path)
    assert run.rank == 1
    assert first_bad(diagnose(run))[0][0] == 200
